import { hostPort } from "../model/addresses.ts";
import { targetText } from "./walk.ts";
import { areOffTheWay } from "./answer.ts";
import type { Answer, Cause } from "./answer.ts";
import type { AskedPacket } from "./question.ts";

const WIDTH = 110;
const OTHERS_SHOWN = 3;
const UNJUDGED_SHOWN = 4;
/** How far what belongs to a heading is set in. */
const MARGIN = "         ";

/**
 * Write an answer for people: what happens to the packet, step by step, then the culprit, then what mends it. Pure.
 *
 * Edges: a command stands on a line of its own, however long it is, so that it can be copied.
 */
export function answerText(answer: Answer): string {
  const { packet, node, backend, steps, causes, unseen } = answer;
  const head = `${packet.protocol} from ${packet.source} to ${targetText(packet)}, as node ${node} sees it (${backend})`;
  const wayAt = areOffTheWay(causes) ? steps.findIndex(({ isOfWay }) => isOfWay === true) : -1;
  const lines = steps.flatMap(({ says, rule }, index) => [
    ...(index === wayAt ? ["     its way, unless what is named below keeps it from that:"] : []),
    ...wrapped(`${says}${rule === undefined ? "" : ` [${rule}]`}`, `${String(index + 1).padStart(3)}  `),
  ]);
  const [culprit, ...others] = causes;
  const parts = [head, "", ...blindLines(answer), ...lines, ...(lines.length === 0 ? [] : [""])];
  parts.push(...(culprit === undefined ? goodEnd(answer) : causeLines(culprit.isSure === false ? "maybe" : "culprit", culprit)));
  if (others.length > 0) {
    parts.push("", "also found:", ...others.slice(0, OTHERS_SHOWN).flatMap((cause) => wrapped(reportedText(cause), "  - ")));
    if (others.length > OTHERS_SHOWN) parts.push(`  and ${others.length - OTHERS_SHOWN} more (-o json)`);
  }
  if (culprit !== undefined)
    parts.push(...unjudgedLines(answer), ...(culprit.id === "unanswered" ? awayLines(answer, "", culprit.says) : []));
  for (const note of answer.notes ?? []) parts.push("", ...wrapped(note, "note: "));
  if (unseen.length > 0 && culprit !== undefined && answer.isSurveyedByProxy !== true)
    parts.push("", ...wrapped(unseen.join("; "), "not looked at: "));
  return `${parts.join("\n")}\n`;
}

/** What a proxy has no right to read may be what is wrong, whatever else is found: who asks it is told so first, and how to ask with more rights. */
function blindLines({ packet, node, unseen, isSurveyedByProxy }: Answer): readonly string[] {
  if (unseen.length === 0 || isSurveyedByProxy !== true) return [];
  return [
    ...wrapped(`could NOT be read by the proxy: ${unseen.join("; ")}`, ""),
    `to ask with all rights, as root on node ${node}:`,
    `  ${askCommand(packet.source, packet.destination, packet)}`,
    "",
  ];
}

function askCommand(from: string, to: string, { port, protocol }: Pick<AskedPacket, "port" | "protocol">): string {
  return `turnout why ${from} ${hostPort(to, port)}${protocol === "TCP" ? "" : `/${protocol.toLowerCase()}`}`;
}

/** What is said where nothing is wrong: no more than was looked at. */
function goodEnd(answer: Answer): readonly string[] {
  const { fate, unjudged, unseen } = answer;
  const where = unseen.length === 0 ? "on this node" : "in the rest, but what is wrong may be in what could not be read";
  const nothing = `nothing wrong was found ${where}${unjudged.length === 0 ? "" : ", but not all rules on the packet's way can be judged"}`;
  const ends = {
    forward: nothing,
    reject: "it is refused, as it should be",
    drop: "it is dropped, as it should be",
    pass: `${nothing}: the packet is not a Service's`,
  };
  const isReportedFirst = unseen.length === 0 || answer.isSurveyedByProxy === true;
  const blind = isReportedFirst ? [] : [...wrapped(`could NOT be read: ${unseen.join("; ")}`, ""), ""];
  return [...blind, ends[fate.is], ...unjudgedLines(answer), ...nextLines(answer)];
}

/** What to ask next, if it does not arrive. */
function nextLines(answer: Answer): readonly string[] {
  const { packet, fate, isProbed } = answer;
  if (fate.is !== "forward") return [];
  const [first] = fate.endpoints;
  const next: string[] = [...arrivalLines(packet)];
  if (packet.protocol === "TCP" && first !== undefined) {
    next.push(...wrapped(`${next.length === 0 ? "if it does not arrive: " : "then "}see whether the endpoint answers`, ""));
    next.push(
      isProbed
        ? `  curl -m 2 http://${hostPort(first.ip, first.port)}/`
        : `  ${askCommand(packet.device === "" ? "host" : packet.source, packet.destination, packet)} --probe`,
    );
  }
  return [...next, ...awayLines(answer, next.length === 0 ? "if it does not arrive: " : "then ")];
}

/** What never comes to this node is for nothing here to blame. */
function arrivalLines({ source, device, isDeviceAssumed }: AskedPacket): readonly string[] {
  if (device === "") return [];
  const assumed = isDeviceAssumed === true ? ` (it was taken to come in by ${device}; where that is wrong, ask with --in DEVICE)` : "";
  return [...wrapped(`if it does not arrive: first see whether it comes to this node${assumed}`, ""), `  tcpdump -ni any host ${source}`];
}

/** Where an endpoint is on another node, that node's own rules and ways count too. */
function awayLines({ packet, fate }: Answer, head: string, blame?: string): readonly string[] {
  if (fate.is !== "forward") return [];
  const blamed = blame?.split(/[\s,;()]+/);
  const away = fate.endpoints.find(
    ({ ip, port, isLocal, masquerade }) => !isLocal && !masquerade && blamed?.includes(hostPort(ip, port)) !== false,
  );
  if (away === undefined) return [];
  return [
    `${head}ask on the endpoint's node${away.nodeName === undefined ? "" : `, ${away.nodeName}`}`,
    `  ${askCommand(packet.source, away.ip, { port: away.port, protocol: packet.protocol })}`,
  ];
}

function unjudgedLines({ unjudged }: Answer): readonly string[] {
  if (unjudged.length === 0) return [];
  const more = unjudged.length > UNJUDGED_SHOWN ? [`  and ${unjudged.length - UNJUDGED_SHOWN} more (-o json)`] : [];
  const reported = unjudged
    .slice(0, UNJUDGED_SHOWN)
    .flatMap(({ says, rule, show }) => [...wrapped(`${says}:`, "  - "), `      ${rule}`, ...commandLines([show], "    look:  ")]);
  return ["", "can't be judged:", ...reported, ...more, ""];
}

/** What is wrong, with the word by which docs/why.md has it. */
function reportedText({ id, says }: Cause): string {
  return `${says} [${id}]`;
}

function causeLines(word: string, cause: Cause): readonly string[] {
  const { show = [], fix, commands = [], instead } = cause;
  return [
    ...wrapped(reportedText(cause), `${word}: `.padEnd(MARGIN.length)),
    ...commandLines(show, "  look:  "),
    ...wrapped(`${fix}${commands.length === 0 ? "" : ":"}`, "  mend:  "),
    ...commandLines(commands, `${MARGIN}  `),
    ...(instead === undefined ? [] : [...wrapped(`${instead.fix}:`, "  or:    "), ...commandLines(instead.commands, `${MARGIN}  `)]),
  ];
}

/** Each command on its own line, below the first. */
function commandLines(commands: readonly string[], head: string): readonly string[] {
  return commands.map((command, index) => `${index === 0 ? head : " ".repeat(head.length)}${command}`);
}

/** Break text into lines; further ones are indented as far as the first one's head. Words stay whole. */
function wrapped(text: string, head: string): readonly string[] {
  const lines: string[] = [];
  let line = head;
  let isFirst = true;
  for (const word of text.split(" ")) {
    if (!isFirst && line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = `${" ".repeat(head.length)}${word}`;
    } else {
      line += `${isFirst ? "" : " "}${word}`;
    }
    isFirst = false;
  }
  return [...lines, line];
}
