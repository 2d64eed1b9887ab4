// What each scenario of packet-scenarios.ts and packet-trials.ts sees when the programs are right.

const none = { connections: 0, datagrams: 0, rejects: 0, drops: 0, outside: 0 };
const REFUSED = "ECONNREFUSED";
const SILENCE = "silence";

/** Who answers whom at which address: by TCP, or by a connected socket of UDP, which also shows its peer. */
const tcp = (asked: string, endpoint: string, client: string): string => `${asked} says ${endpoint} to ${client}`;
const udp = (asked: string, endpoint: string, client: string): string => `${asked} ${tcp(asked, endpoint, client)}`;

/** The answers of one endpoint to one client, whose addresses are `10.1.1.N` and `fd00:1:1::N` of each family, at addresses of both families in turn. */
function answers(asked: readonly string[], endpoint: number, clients: readonly [string, string]): readonly string[] {
  return [tcp, udp].flatMap((how) =>
    asked.map((one) => (one.startsWith("[") ? how(one, `fd00:1:1::${endpoint}`, clients[1]) : how(one, `10.1.1.${endpoint}`, clients[0]))),
  );
}

/** Clients as endpoints see them: masqueraded, outside, the pod. */
const NODE = ["10.1.1.1", "fd00:1:1::1"] as const;
const PRIMARY = ["172.18.0.1", "fd00:18::1"] as const;
const CLIENT = ["172.18.0.2", "fd00:18::2"] as const;
const POD = ["10.1.1.90", "fd00:1:1::90"] as const;

const CLUSTER_IP = ["10.96.0.1:80", "[fd00:96::1]:80"];
const NODE_PORT = ["172.18.0.1:30005", "[fd00:18::1]:30005"];
const EXTERNAL = [
  ...answers(["198.51.100.5:80", "[fd00:51::5]:80", "198.51.100.2:80", "[fd00:51::2]:80"], 10, NODE),
  ...answers(NODE_PORT, 10, NODE),
];

const BASICS = {
  outside: answers(CLUSTER_IP, 10, NODE),
  pod: answers(CLUSTER_IP, 10, POD),
  counted: [
    { ...none, connections: 2 },
    { ...none, connections: 2 },
  ],
  leaks: 0,
};

/** Endpoints 10.1.1.N as `endpointsOf` of clients.ts tells them. */
const of = (client: string, ...endpoints: readonly number[]): readonly string[] =>
  endpoints.map((endpoint) => (client.includes(":") ? `fd00:1:1::${endpoint} to ${client}` : `10.1.1.${endpoint} to ${client}`));

/** What a kernel before 6.7 does, which can't tell the source address of a route: it is the primary one. */
export const WITHOUT_ROUTES: unknown = { ...BASICS, outside: answers(CLUSTER_IP, 10, PRIMARY) };

/** By the scenario's name. */
export const PACKETS_EXPECTED: Readonly<Record<string, unknown>> = {
  clusterIP: BASICS,
  bridges: {
    outside: [...answers(CLUSTER_IP, 10, NODE), ...answers(NODE_PORT, 10, NODE)],
    pod: [...answers(CLUSTER_IP, 10, POD), ...answers(NODE_PORT, 10, NODE)],
    refused: [REFUSED],
    counted: [
      { ...none, connections: 4 },
      { ...none, connections: 4 },
    ],
    leaks: 0,
  },
  external: { outside: EXTERNAL, pod: EXTERNAL, others: Array.from({ length: 5 }, () => REFUSED) },
  hairpin: [
    ...answers(["10.96.0.9:80", "[fd00:96::9]:80"], 90, NODE),
    tcp("198.51.100.5:80", "10.1.1.90", NODE[0]),
    udp("[fd00:18::1]:30005", "fd00:1:1::90", NODE[1]),
  ],
  sourceRanges: [SILENCE, true],
  onePort: {
    four: ["198.51.100.5:80", "172.18.0.1:30005", "198.51.100.5:80"].map((asked) => tcp(asked, "10.1.1.50", CLIENT[0])),
    six: ["[fd00:51::5]:80", "[fd00:18::1]:30005", "[fd00:51::5]:80"].map((asked) => tcp(asked, "fd00:1:1::50", CLIENT[1])),
  },
  reopened: { answers: Array.from({ length: 3 }, () => of(NODE[0], 10)[0]), leaks: 0 },
  established: { said: of(NODE[0], 10)[0], echoes: [1000, 1000, 1000], other: tcp("10.96.0.1:80", "10.1.1.15", NODE[0]) },
  fragments: [
    udp("10.96.0.5:80", "10.1.1.50", NODE[0]),
    udp("[fd00:96::5]:80", "fd00:1:1::50", NODE[1]),
    udp("198.51.100.5:80", "10.1.1.50", CLIENT[0]),
    udp("[fd00:18::1]:30005", "fd00:1:1::50", CLIENT[1]),
  ].map((answer) => `${answer} in 4000 bytes`),
  icmpErrors: { refused: Array.from({ length: 4 }, () => REFUSED), echoes: [100_000, 100_000] },
  answersToNodePorts: answers(CLUSTER_IP, 10, NODE),
  hostEndpoint: {
    outside: [...answers(["10.96.0.3:80", "[fd00:96::3]:80"], 30, CLIENT), tcp("172.18.0.1:30005", "10.1.1.30", CLIENT[0])],
    pod: [...answers(["10.96.0.3:80", "[fd00:96::3]:80"], 30, POD), tcp("172.18.0.1:30005", "10.1.1.30", POD[0])],
  },
  servedSockets: {
    served: { pod: answers(CLUSTER_IP, 10, POD), host: answers(CLUSTER_IP, 10, NODE) },
    itself: [tcp("10.1.1.10:8080", "10.1.1.20", POD[0]), udp("[fd00:1:1::10]:8080", "fd00:1:1::20", POD[1])],
    withoutEndpoints: { pod: answers(CLUSTER_IP, 10, POD), host: answers(CLUSTER_IP, 10, NODE) },
  },
  podDevices: { outside: of(CLIENT[0], 50), pod: of(POD[0], 50, 55), clusterIP: [of(NODE[0], 50, 55), of(POD[0], 50, 55)] },
  readings: [],
  origins: {
    outside: 2,
    pod: -1,
    host: -1,
    hostsPodAddress: -1,
    atPods: -1,
    // The host is masqueraded, pods are not, wherever they are told by: their address, or the device.
    flows: of("10.1.1.1", 55).concat(of("10.1.1.90", 55), of("172.18.0.1", 55), of("203.0.113.5", 55)),
  },
  out: { dropped: [2, 2, 2], six: 2, counted: 1, sent: [-1, -1, -1] },
  strays: {
    codes: { syn: -1, ack: -1, data: -1, fin: 2, reset: 2, resetAck: 2 },
    flows: of(PRIMARY[0], 10),
    count: 3,
  },
  flips: { codes: [-1], flows: of("203.0.113.5", 10, 11, 15), isMany: true },
  crowd: { isShared: true, isUsed: true },
  kfuncs: { tcp: 0, udp: 0, sctp: 71 },
};
