import {
  answerText,
  explainPacket,
  hitOf,
  hostPort,
  parseQuestion,
  ProxyError,
  serviceNamed,
  type AskedPacket,
  type ExplainedState,
  type Fate,
  type HiddenService,
  type KnownSource,
  type ParsedQuestion,
} from "@turnout/core";
import { jsonReply, type HttpRequest, type Reply } from "../health/health.ts";
import { refusal, textReply } from "./host-only.ts";
import type { ProxyView } from "./proxy-view.ts";
import type { WhyHelp } from "./why-help.ts";

/**
 * Answer `/turnout/why?from=…&to=…&protocol=…`, with FROM and TO as the command has them: what becomes of that packet. `port` may be asked for apart.
 *
 * Edges: with `device`, FROM is an address; `assumed=yes` says that the device is a guess. `output=text` is for people.
 */
export async function whyReply({ query }: HttpRequest, proxy: ProxyView, signal: AbortSignal): Promise<Reply> {
  const named = serviceNamed(query.get("service") ?? query.get("to") ?? "");
  if (named !== undefined) return refusal(400, addressesText(`${named.namespace}/${named.name}`, proxy));
  const question = questionOf(query);
  if (ProxyError.is(question)) return refusal(400, question.message);
  const view = proxy.families.find(({ family }) => family === question.family);
  if (view?.context === undefined)
    return refusal(400, `nothing is known of ${question.family} here: this proxy does not serve it, or has not heard of its node yet`);
  const { why = {} } = proxy;
  const own = (await why.addresses?.(question.family)) ?? proxy.hostAddresses(question.family);
  const whole = await packetOf(question, query, (asked) => why.locate?.(asked, own, signal));
  if (whole === undefined) return refusal(400, "FROM: this proxy can't tell from which address its host sends: write that address");
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
  const explained = await explainPacket({ packet: whole, state, backend, isOfProxy: true, ...inProcess, ...surveyed }, signal);
  const answer = { ...explained, ...(survey === undefined ? {} : { isSurveyedByProxy: true as const }) };
  return query.get("output") === "text" ? textReply(answerText(answer)) : jsonReply(200, { ...answer, masqueradeBit, podCIDRs });
}

function sourceOf({ source, sources, families, why = {} }: ProxyView): KnownSource {
  const hasRows = families.some(({ rows }) => rows.size > 0);
  const [known] = why.objects?.services() ?? [];
  return {
    name: source,
    problems: [...sources].filter(([, problem]) => problem !== "").map(([part, problem]) => `${part}: ${problem}`),
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

/** What was asked; an error says what can't be read. */
function questionOf(query: URLSearchParams): ParsedQuestion | ProxyError {
  const [from = "", to = "", protocol = "TCP", port] = ["from", "to", "protocol", "port"].map((name) => query.get(name) ?? undefined);
  try {
    return parseQuestion({ from, to: port === undefined ? to : hostPort(to, Number(port)), protocol });
  } catch (error) {
    if (!ProxyError.is(error)) throw error;
    return error;
  }
}

/** The packet, and by which device it comes in; undefined: nobody can tell from which address this host sends. */
async function packetOf(
  question: ParsedQuestion,
  query: URLSearchParams,
  locate: (question: ParsedQuestion) => Promise<AskedPacket> | undefined,
): Promise<AskedPacket | undefined> {
  const { from, ...rest } = question;
  const device = query.get("device");
  const isHost = from === "host";
  const located = device === null || isHost ? await locate(question) : undefined;
  if (located !== undefined || isHost) return located;
  return { ...rest, source: from, device: device ?? "", ...(query.get("assumed") === "yes" ? { isDeviceAssumed: true } : {}) };
}
