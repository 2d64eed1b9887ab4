// What each scenario of sockets-child.ts sees when the programs are right.

const none = { connections: 0, datagrams: 0, rejects: 0, drops: 0, outside: 0 };
const REFUSED = "ECONNREFUSED";
const SILENCE = "silence";

/** By the scenario's name. */
export const EXPECTED: Readonly<Record<string, unknown>> = {
  oneSocket: {
    // An endpoint by way of its service, by its own address, and by its service again.
    direct: ["10.96.0.8:80 says 10.1.1.85", "10.1.1.85:8080 says 10.1.1.85", "10.96.0.8:80 says 10.1.1.85"],
    shown: ["10.96.0.2:80"],
    kept: 1,
    spread: ["10.1.1.20", "10.1.1.25"],
    mixed: ["[fd00:96::8]:80 says fd00:1:1::85", "[fd00:1:1::86]:8080 says fd00:1:1::86"],
    both: ["10.96.0.8:80 says 10.1.1.85", "10.1.1.70:8080 says 10.1.1.70", "10.96.0.8:80 says 10.1.1.85"],
  },
  kept: {
    first: ["10.1.1.10", "10.1.1.15", "fd00:1:1::10", "fd00:1:1::15"],
    isKept: true,
    isKeptStill: true,
    strays: [],
    again: true,
  },
  closed: { open: { asked_tcp: 3, asked_udp: 3 }, left: { asked_tcp: 0, asked_udp: 0 } },
  crowd: ["10.96.0.2:80", "10.96.0.2:80"],
  nodePortAsClient: {
    answers: [
      "10.1.1.70:9000 says 10.1.1.70 answers",
      "172.18.0.1:30002 says 10.1.1.20",
      SILENCE,
      "[fd00:1:1::70]:9000 says fd00:1:1::70 answers",
      "[fd00:18::1]:30002 says fd00:1:1::20",
      SILENCE,
    ],
    // A socket that asked a service has two.
    noted: 6,
    counted: [
      { ...none, datagrams: 2 },
      { ...none, datagrams: 2 },
    ],
  },
  twoServices: ["10.96.0.8:80 says 10.1.1.85", "198.51.100.8:80 says 10.1.1.85", "10.96.0.8:80 says 10.1.1.85"],
  addresses: ["172.18.0.1:30001 says 10.1.1.10", "[::ffff:172.18.0.1]:30001 says 10.1.1.10", REFUSED, REFUSED, REFUSED, REFUSED],
  refusals: {
    answers: Array.from({ length: 9 }, () => REFUSED),
    counted: [
      { ...none, rejects: 2 },
      { ...none, rejects: 4 },
    ],
  },
  affinityOfTwo: 2,
  optOut: {
    service: [SILENCE, "10.96.0.5:80 says 10.1.1.50"],
    host: ["10.96.0.1:80 says 10.1.1.10", "10.96.0.5:80 says 10.1.1.50"],
    namespace: [SILENCE, SILENCE],
    neither: ["10.96.0.1:80 says 10.1.1.10", "10.96.0.5:80 says 10.1.1.50"],
  },
  flips: { errors: [], seen: ["10.1.1.10:8080", "10.1.1.11:8080", "10.1.1.15:8080"], isMany: true },
};
