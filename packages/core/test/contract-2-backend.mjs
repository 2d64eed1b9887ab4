// A backend as it was built against the first published contract 2. It stands for all backends that exist by now: never edit this file.
// Whatever a later core does within contract 2, this loads and runs.
const held = new Map();
const idOf = ({ kind, key }) => `${kind} ${key}`;

export { held };
export default {
  name: "first",
  contract: 2,
  residence: "kernel",
  capabilities: { IPv4: true, TCP: true, SCTP: "not here" },
  parseOptions: (options) => options,
  probe: async () => ({ facts: "facts", versions: {}, problems: [] }),
  open: async () => ({
    family: () => ({
      skeleton: ({ node, host }) => [{ kind: "node", key: node.name, value: host }],
      render: ({ destinations, endpoints, cluster }) =>
        destinations.map(({ address, port }) => ({
          kind: "port",
          key: `${address}:${port}`,
          value: cluster.map((index) => endpoints[index].ip),
        })),
      plan: ({ put, remove }) => ({ steps: [...remove.map((object) => ["remove", object]), ...put.map(({ after }) => ["put", after])] }),
      observe: async () => ({ objects: new Map(held), lingering: [] }),
      apply: async ({ steps }) => {
        for (const [verb, object] of steps) verb === "put" ? held.set(idOf(object), object) : held.delete(idOf(object));
        return {};
      },
    }),
    close: async () => {},
  }),
};
