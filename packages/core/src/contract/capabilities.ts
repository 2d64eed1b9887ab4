/** `true`: the backend can. A text says why it can't; it is shown to people. */
export type Ability = true | string;

/**
 * What a service proxy may be asked for beyond plain forwarding.
 *
 * Shape: the core leaves what a backend can't do out of its rows, see {@link fitRow}. A capability that a module doesn't name has its value of
 * {@link CAPABILITY_DEFAULTS}.
 */
export interface Capabilities {
  /** Services with IPv4 addresses. Without it the backend is not opened for that family. Default: no. */
  readonly IPv4: Ability;
  /** Services with IPv6 addresses. Without it the backend is not opened for that family. Default: no. */
  readonly IPv6: Ability;
  /** Ports of protocol TCP. Without it their rows are left out. Default: no. */
  readonly TCP: Ability;
  /** Ports of protocol UDP. Without it their rows are left out. Default: no. */
  readonly UDP: Ability;
  /** Ports of protocol SCTP. Without it their rows are left out. Default: no. */
  readonly SCTP: Ability;
  /** `sessionAffinity: ClientIP`. Without it rows come without affinity. Default: no. */
  readonly sessionAffinity: Ability;
  /** `loadBalancerSourceRanges`. Without it the restricted addresses are left out, and so closed. Default: no. */
  readonly sourceRanges: Ability;
  /** Endpoints see who the client is, where no rule says `masquerade`. Without it every endpoint sees the node, and interfaces tell no pods. Default: no. */
  readonly clientAddress: Ability;
  /** A pod that reaches itself through its Service gets answers. Without it such a pod is treated like any other. Default: no. */
  readonly hairpin: Ability;
  /** Packets that the host itself sends are served. Without it they pass. Default: no. */
  readonly hostOrigin: Ability;
  /** Packets can be dropped without an answer. Without it they are rejected, but for UDP, where not to answer takes nothing. Default: no. */
  readonly drop: Ability;
  /** Packets can be refused with an answer. Without it they are dropped if `drop` says true, and pass otherwise. Default: yes. */
  readonly refuse: Ability;
  /** Rules can tell who sends a packet. Without it each destination has the rule for anyone, besides source ranges. Default: yes. */
  readonly origins: Ability;
  /** Endpoints of one row may have different ports. Without it a pool keeps those of the port that most have, the smaller of two. Default: yes. */
  readonly endpointPorts: Ability;
  /** Endpoints may have an address of the host that serves, or of its Node object. Without it they are left out of the pools. Default: yes. */
  readonly hostEndpoints: Ability;
  /** Endpoints may have an address and port of another Service. Without it nobody knows what becomes of a packet to such an endpoint. Default: yes. */
  readonly serviceEndpoints: Ability;
  /** UDP flows can be forgotten. Without it no rule asks for that. Default: yes. */
  readonly forgetsFlows: Ability;
}

/** The name of one of the {@link Capabilities}. */
export type Capability = keyof Capabilities;

const NOT_NAMED = "the backend does not say that it can";

/**
 * What a capability is taken to be that a module doesn't name. A backend that was written before a capability existed can't name it: a new one
 * gets the default that is true of those backends, and nothing else in this list changes within a contract.
 */
export const CAPABILITY_DEFAULTS: Capabilities = {
  IPv4: NOT_NAMED,
  IPv6: NOT_NAMED,
  TCP: NOT_NAMED,
  UDP: NOT_NAMED,
  SCTP: NOT_NAMED,
  sessionAffinity: NOT_NAMED,
  sourceRanges: NOT_NAMED,
  clientAddress: NOT_NAMED,
  hairpin: NOT_NAMED,
  hostOrigin: NOT_NAMED,
  drop: NOT_NAMED,
  refuse: true,
  origins: true,
  endpointPorts: true,
  hostEndpoints: true,
  serviceEndpoints: true,
  forgetsFlows: true,
};

/** The capabilities that contract 2 began with. */
type FirstCapability =
  "IPv4" | "IPv6" | "TCP" | "UDP" | "SCTP" | "sessionAffinity" | "sourceRanges" | "clientAddress" | "hairpin" | "hostOrigin" | "drop";

/**
 * What a backend names that can do all that contract 2 began with.
 *
 * Edges: a capability that is added later is never in it. The core that runs a backend may be newer than the one it was written for, and would
 * otherwise take this for a promise to do what its author has never heard of. A backend names what was added later itself, beside this.
 */
export const ALL_CAPABILITIES: Readonly<Record<FirstCapability, true>> = {
  IPv4: true,
  IPv6: true,
  TCP: true,
  UDP: true,
  SCTP: true,
  sessionAffinity: true,
  sourceRanges: true,
  clientAddress: true,
  hairpin: true,
  hostOrigin: true,
  drop: true,
};

/** Behaviours in which service proxies legitimately differ; a backend declares its choice, and the conformance kit expects that. */
export interface Variants {
  /** A port nobody defined on a known cluster IP. Default: `pass`. */
  readonly undefinedClusterIPPort: "pass" | "reject";
  /** A port nobody defined on an external or load-balancer IP that some Service has. Default: `pass`. */
  readonly undefinedExternalPort: "pass" | "reject";
  /** An address inside a ServiceCIDR that no Service has. Default: `pass`. */
  readonly unallocatedClusterIP: "pass" | "drop";
  /** Which node addresses refuse a node port that has no endpoint to go to, or drop it. Default: `nodePortAddresses`. */
  readonly nodePortRejectScope: "nodePortAddresses" | "anyLocalAddress";
  /**
   * Whether packets that the host itself sends to external and load-balancer IPs elsewhere are refused (or dropped, by policy) too; others always
   * are. Default: true.
   */
  readonly rejectFromHost: boolean;
  /** A source outside the ranges of a load-balancer IP that has no endpoints. Default: `drop`. */
  readonly blockedWithoutEndpoints: "drop" | "reject";
  /** What one affinity entry is for: a whole row, or at least one of its addresses. Default: `row`. */
  readonly affinityScope: "row" | "address";
  /**
   * Whether node ports answer the host itself on loopback. `IPv4`: on 127.0.0.1, where the node-port addresses contain it; no kernel can on ::1. `TCP`: on
   * 127.0.0.1 and ::1, where {@link namesLoopback} holds: the process that runs the backend answers TCP there, so the backend leaves TCP to the host, and
   * it refuses UDP and SCTP. Default: `never`.
   */
  readonly nodePortsOnLoopback: "never" | "IPv4" | "TCP";
  /**
   * Where all servers of a packet change, and with them whether they see its source: both at once, or one after the other, so that for a moment
   * a server may see the other source. Default: `atOnce`.
   */
  readonly rowChanges: "atOnce" | "inParts";
  /**
   * Where processes of this node, in pods or not, are served: their packets, or, for TCP and UDP, their sockets, before there is any packet. At a
   * socket nobody rewrites a source, who is in a pod's network namespace is a pod, and affinity is for a network namespace. Where source ranges keep a
   * pod of this node out, packets of its pods are served; where they keep the node's primary address out, the host is not. Default: `packets`.
   */
  readonly localClients: "packets" | "sockets";
  /** Which of the host's addresses answer node ports: those that the settings choose, or all whatever they say. Default: `settings`. */
  readonly nodePortScope: "settings" | "all";
  /**
   * What affinity is made of: the dataplane remembers each client until its time is up, or the client's address decides for as long as the
   * endpoints stay the same, without a time. Default: `memory`.
   */
  readonly affinityBy: "memory" | "address";
}

/**
 * What each variant may be. The first is what a variant is taken to be that a module doesn't name: what a backend does that only carries out the
 * rules of each destination. A new variant begins with what all backends did before; nothing else in this list changes within a contract.
 */
export const VARIANT_VALUES: { readonly [Name in keyof Variants]: readonly [Variants[Name], ...Variants[Name][]] } = {
  undefinedClusterIPPort: ["pass", "reject"],
  undefinedExternalPort: ["pass", "reject"],
  unallocatedClusterIP: ["pass", "drop"],
  nodePortRejectScope: ["nodePortAddresses", "anyLocalAddress"],
  rejectFromHost: [true, false],
  blockedWithoutEndpoints: ["drop", "reject"],
  affinityScope: ["row", "address"],
  nodePortsOnLoopback: ["never", "IPv4", "TCP"],
  rowChanges: ["atOnce", "inParts"],
  localClients: ["packets", "sockets"],
  nodePortScope: ["settings", "all"],
  affinityBy: ["memory", "address"],
};

/** What a backend names of itself; what it leaves out has its default. Names that this core doesn't know count for nothing. */
export interface NamedAbilities {
  /** Of a probe: what this host lacks. */
  readonly capabilities?: Readonly<Partial<Capabilities>>;
  /** Of a probe: what is otherwise on this host. */
  readonly variants?: Readonly<Partial<Variants>>;
}

/** What holds of a backend on one host, nothing left out. */
export interface Abilities {
  /** What it can do. */
  readonly capabilities: Capabilities;
  /** How it behaves where service proxies differ. */
  readonly variants: Variants;
}

const CAPABILITY_NAMES = Object.keys(CAPABILITY_DEFAULTS) as readonly Capability[];
const VARIANT_NAMES = Object.keys(VARIANT_VALUES) as readonly (keyof Variants)[];

/** A value as people would write it. */
export function valueText(value: unknown): string {
  if (typeof value === "function") return "a function";
  if (typeof value === "object" && value !== null) return Array.isArray(value) ? "a list" : "an object";
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}

/** Say what is wrong with what a module or a probe names of itself; empty: nothing. Pure, never throws. */
export function abilityFaults({
  capabilities,
  variants,
}: {
  readonly capabilities?: unknown;
  readonly variants?: unknown;
}): readonly string[] {
  return [
    ...tableFaults("capabilities", capabilities, CAPABILITY_NAMES, () => "true or a text that says why not", isAbility),
    ...tableFaults(
      "variants",
      variants,
      VARIANT_NAMES,
      (name) => VARIANT_VALUES[name].map(valueText).join(" or "),
      (value, name) => VARIANT_VALUES[name].some((allowed) => allowed === value),
    ),
  ];
}

function isAbility(value: unknown): boolean {
  return value === true || (typeof value === "string" && value !== "");
}

function tableFaults<Name extends string>(
  table: string,
  given: unknown,
  names: readonly Name[],
  allowed: (name: Name) => string,
  isAllowed: (value: unknown, name: Name) => boolean,
): readonly string[] {
  if (given === undefined) return [];
  if (typeof given !== "object" || given === null || Array.isArray(given)) return [`${table} is ${valueText(given)}, not an object`];
  const entries = given as Readonly<Partial<Record<Name, unknown>>>;
  return names.flatMap((name) => {
    const value = entries[name];
    return value === undefined || isAllowed(value, name) ? [] : [`${table}.${name} is ${valueText(value)}, not ${allowed(name)}`];
  });
}

/** Say which capabilities a probe names that the module refuses: a probe can only take away. Pure. */
export function wideningFaults(named: NamedAbilities, found: NamedAbilities): readonly string[] {
  const own = { ...CAPABILITY_DEFAULTS, ...named.capabilities };
  return CAPABILITY_NAMES.filter((name) => found.capabilities?.[name] === true && own[name] !== true).map(
    (name) => `capabilities.${name} is true, and the module refuses it: ${own[name]}`,
  );
}

/**
 * Fill in what a backend leaves out, and take away what its probe found this host to lack. Pure.
 *
 * Edges: variants that the probe names replace the module's; a capability it names counts only where the module has it.
 */
export function abilitiesOf(named: NamedAbilities, found: NamedAbilities = {}): Abilities {
  const own = { ...CAPABILITY_DEFAULTS, ...named.capabilities };
  const lost = Object.entries(found.capabilities ?? {}).filter(([name]) => own[name as Capability] === true);
  const variants = Object.fromEntries(
    VARIANT_NAMES.map((name) => [name, found.variants?.[name] ?? named.variants?.[name] ?? VARIANT_VALUES[name][0]]),
  );
  const capabilities = Object.fromEntries(
    Object.entries({ ...own, ...Object.fromEntries(lost) }).filter(([name]) => name in CAPABILITY_DEFAULTS),
  );
  return { capabilities: capabilities as unknown as Capabilities, variants: variants as unknown as Variants };
}
