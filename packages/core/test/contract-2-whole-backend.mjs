// A backend as it was built against the first published contract 2, with every member and every outcome that it has, and imports as a package has
// them. It stands for all backends that exist by now: never edit this file. Whatever a later core does within contract 2, this loads and runs.
import { ALL_CAPABILITIES, hostPort, nodePortAddresses, objectId, ProxyError, unusableReason } from "@turnout/core/backend";

/** The host: what the backend has made on it, and how it behaves. */
export const host = {
  addresses: ["127.0.0.1", "172.18.0.1"],
  held: new Map(),
  lingering: new Map(),
  full: new Set(),
  locked: false,
  did: [],
  forgotten: [],
  closed: [],
  events: [],
  wake: () => {},
};

const LINGERS_MS = 1000;

export default {
  name: "whole",
  contract: 2,
  residence: "kernel",
  capabilities: ALL_CAPABILITIES,
  variants: { undefinedClusterIPPort: "reject", affinityScope: "address" },
  nodePortAddressesDefault: ["primary"],
  proxyMode: "nftables",
  serviceEntriesMax: 100,
  createWorld: (base) => ({ ...base, host, close: () => void host.closed.push("world") }),
  parseOptions: ({ table = "whole", ...unknown }) => {
    for (const name of Object.keys(unknown)) throw new ProxyError("invalid_object", `unknown option ${name}`, { hint: "known: table" });
    return { table };
  },
  probe: async (_options, world) => ({
    facts: { addresses: world.host.addresses },
    versions: { whole: "1.0" },
    problems: [],
    capabilities: { SCTP: "not in this kernel" },
    variants: { rejectFromHost: false },
  }),
  open: async ({ table }, world) => ({
    family: (family) => {
      if (family !== "IPv4") throw new ProxyError("host_unsupported", `no ${family} here`);
      return new WholeBackend(table, family, world);
    },
    close: async () => void world.host.closed.push("dataplane"),
  }),
};

class WholeBackend {
  tellsDrift = true;

  constructor(table, family, world) {
    Object.assign(this, { table, family, world, failures: 0 });
  }

  skeleton({ node, host: { addresses } }) {
    const wanted = node.settings.nodePortAddresses ?? ["primary"];
    const chosen = nodePortAddresses({ wanted, family: this.family, primary: node.addresses[0], hostAddresses: addresses });
    const answering = (chosen === "all" ? addresses : chosen).filter((ip) => unusableReason(ip) === undefined);
    return [{ kind: "node", key: `${this.table} ${node.name}`, value: { answering } }];
  }

  render(row, { node }) {
    const { protocol } = row.name;
    const servers = row.cluster.map((index) => hostPort(row.endpoints[index].ip, row.endpoints[index].port));
    const size = { kind: "size", key: String(servers.length), value: true };
    const ports = row.destinations.map(({ address, port, rules, sourceRanges = [] }) => ({
      kind: "port",
      key: `${protocol} ${hostPort(address === "" ? "*" : address, port)}`,
      value: {
        of: `${row.name.namespace}/${row.name.name}`,
        servers,
        sources: sourceRanges,
        rules: rules.map(({ from, to, masquerade }) => `${from} ${to}${masquerade ? ` ${node.settings.masqueradeBit}` : ""}`),
      },
    }));
    return [...ports, size];
  }

  isShared({ kind }) {
    return kind === "size";
  }

  plan({ put, remove, lingering, nowMs }) {
    return {
      steps: [
        ...put.map(({ before, after, lingering: left }) => ({ verb: left ? "revive" : before ? "change" : "add", object: after })),
        ...remove.map((object) => ({ verb: "remove", object })),
        ...lingering.map(({ object, sinceMs }) => ({ verb: "finish", object, forMs: nowMs - sinceMs })),
      ],
    };
  }

  explain({ steps }) {
    return steps.map(({ verb, object }) => `${verb} ${objectId(object)}`).join("\n");
  }

  async observe() {
    return { objects: new Map(host.held), lingering: [...host.lingering.values()] };
  }

  async apply({ steps }, _signal, turn) {
    const { clock } = this.world;
    const [failed, deferred, lingering] = [new Map(), new Set(), []];
    if (host.locked) throw new ProxyError("tool_failed", "the table is locked", { object: this.table });
    for (const [index, { verb, object, forMs }] of steps.entries()) {
      const id = objectId(object);
      if (turn !== undefined && index > 0 && clock.nowMs() >= turn.untilMs) {
        deferred.add(id);
        continue;
      }
      host.did.push(forMs === undefined ? `${verb} ${id}` : `${verb} ${id} after ${forMs} ms`);
      if (host.full.has(id)) {
        this.failures++;
        failed.set(id, new ProxyError("tool_failed", "there is no room", { object: id }));
      } else if (verb === "remove" && turn !== undefined) {
        host.held.delete(id);
        host.lingering.set(id, object);
        lingering.push({ object, afterMs: LINGERS_MS });
      } else if (verb === "remove" || verb === "finish") {
        host.held.delete(id);
        host.lingering.delete(id);
      } else {
        host.lingering.delete(id);
        host.held.set(id, object);
      }
    }
    return { failed, deferred, lingering };
  }

  async forgetFlows(flows, signal) {
    if (signal.aborted) return 0;
    host.forgotten.push(...flows);
    return flows.length;
  }

  async *watch(signal) {
    yield { kind: "facts", facts: { addresses: host.addresses } };
    while (!signal.aborted) {
      const event = host.events.shift();
      if (event !== undefined) yield event;
      else await new Promise((resolve) => (host.wake = resolve));
    }
  }

  metrics() {
    return [
      { name: "whole_failures_total", help: "Objects without room.", kind: "counter", labels: { table: this.table }, value: this.failures },
    ];
  }

  async cleanup() {
    host.held.clear();
    host.lingering.clear();
  }

  async leftovers(isInUse) {
    if (isInUse || host.held.size === 0) return [];
    return [{ what: `table ${this.table}`, remove: async () => host.held.clear() }];
  }
}
