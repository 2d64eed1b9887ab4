import {
  canonicalIP,
  explainPacket,
  familyOf,
  hitOf,
  hostPort,
  type AskedPacket,
  type ExplainedState,
  type Fate,
  type HiddenService,
  type KnownSource,
  type Protocol,
} from "@turnout/core";
import { jsonReply, type HttpRequest, type Reply } from "../health/health.ts";
import { refusal } from "./host-only.ts";
import type { ProxyView } from "./proxy-view.ts";
import type { WhyHelp } from "./why-help.ts";

const PROTOCOLS: readonly Protocol[] = ["TCP", "UDP", "SCTP"];
const USAGE =
  "ask with from, to (addresses), port, protocol (TCP, UDP, SCTP) and, where it is known, device; assumed=yes where that is a guess";

/** Answer `/turnout/why?from=…&to=…&port=…&protocol=…`: what becomes of that packet. */
export async function whyReply({ query }: HttpRequest, proxy: ProxyView, signal: AbortSignal): Promise<Reply> {
  const service = query.get("service");
  if (service !== null) return refusal(400, addressesText(service, proxy));
  const asked = packetOf(query);
  if (asked === undefined) return refusal(400, USAGE);
  const { packet, device, isAssumed } = asked;
  const view = proxy.families.find(({ family }) => family === packet.family);
  if (view?.context === undefined)
    return refusal(400, `nothing is known of ${packet.family} here: this proxy does not serve it, or has not heard of its node yet`);
  const { why = {} } = proxy;
  const own = (await why.addresses?.(packet.family)) ?? proxy.hostAddresses(packet.family);
  const isHosts = own.includes(packet.source);
  const located = device === undefined && !isHosts ? await why.locate?.(packet, own, signal) : undefined;
  const whole: AskedPacket = located ?? { ...packet, device: device ?? "", ...(isAssumed ? { isDeviceAssumed: true } : {}) };
  const { node, host } = view.context;
  const { masqueradeBit } = node.settings;
  const { podCIDRs } = node;
  const known: ExplainedState = {
    node,
    rows: [...view.rows.values()],
    hostAddresses: own,
    nodePortAddressesDefault: proxy.module.nodePortAddressesDefault ?? [],
    capabilities: proxy.host.capabilities,
    variants: proxy.host.variants,
    issues: [...view.issues()],
    objects: why.objects,
    source: sourceOf(proxy),
    refusals: view.refusals,
  };
  // Who has the address otherwise matters only where no Service here has it, and takes longer to find out than all else.
  const state = hitOf(known, whole) === undefined ? { ...known, hidden: await hiddenOf(why, signal) } : known;
  // Who asks may look by itself, with more rights than a proxy has.
  const survey = query.get("survey") === "no" ? undefined : why.survey;
  const surveyed =
    survey === undefined
      ? {}
      : { survey: (fate: Fate, stop: AbortSignal) => survey(whole, fate, { hostAddresses: own, masqueradeBit, podCIDRs }, stop) };
  const backend = { name: proxy.module.name, family: view.backend, host };
  const inProcess = proxy.module.residence === "process" ? { isInProcess: true as const } : {};
  const answer = await explainPacket({ packet: whole, state, backend, isOfProxy: true, ...inProcess, ...surveyed }, signal);
  return jsonReply(200, { ...answer, masqueradeBit, podCIDRs });
}

function sourceOf({ source, sources, families, why = {} }: ProxyView): KnownSource {
  const hasRows = families.some(({ rows }) => rows.size > 0);
  const [known] = why.objects?.services() ?? [];
  return {
    name: source,
    troubles: [...sources].filter(([, trouble]) => trouble !== "").map(([part, trouble]) => `${part}: ${trouble}`),
    isEmpty: !hasRows && known === undefined,
    wasFilled: families.some(({ hadServices }) => hadServices),
  };
}

const ADDRESSES_MAX = 6;

/** Packets are for addresses: name those of the Service under `namespace/name`. */
function addressesText(service: string, { families }: ProxyView): string {
  const found = families.flatMap(({ rows }) =>
    [...rows.values()]
      .filter(({ name }) => `${name.namespace}/${name.name}` === service)
      .flatMap(({ name, destinations }) =>
        destinations.map(({ kind, address, port }) =>
          kind === "nodePort" ? `node port ${port}/${name.protocol}` : `${hostPort(address, port)}/${name.protocol}`,
        ),
      ),
  );
  if (found.length === 0) return "no Service of that name has an address here";
  const addresses = [...new Set(found)];
  const more = addresses.length > ADDRESSES_MAX ? ", …" : "";
  return `ask for an address: Service ${service} has ${addresses.slice(0, ADDRESSES_MAX).join(", ")}${more}`;
}

/** An API server that is away is no reason to say nothing. */
async function hiddenOf({ hidden }: WhyHelp, signal: AbortSignal): Promise<readonly HiddenService[]> {
  if (hidden === undefined) return [];
  return await hidden(signal).then(
    (found) => found,
    () => [],
  );
}

function packetOf(
  query: URLSearchParams,
): { readonly packet: Omit<AskedPacket, "device">; readonly device: string | undefined; readonly isAssumed: boolean } | undefined {
  const [source, destination] = ["from", "to"].map((name) => canonicalIP(query.get(name) ?? "")?.text);
  const port = Number(query.get("port"));
  const protocol = PROTOCOLS.find((one) => one === (query.get("protocol") ?? "TCP").toUpperCase());
  if (source === undefined || destination === undefined || protocol === undefined || !(port >= 1 && port <= 65_535)) return undefined;
  const packet = { family: familyOf(destination), protocol, source, destination, port };
  return { packet, device: query.get("device") ?? undefined, isAssumed: query.get("assumed") === "yes" };
}
