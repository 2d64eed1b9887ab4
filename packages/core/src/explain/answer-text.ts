import { targetText } from "./walk.ts";
import type { Answer, Cause } from "./answer.ts";

const WIDTH = 110;
const OTHERS_SHOWN = 3;

/** Write an answer for people: what happens to the packet, step by step, then the culprit, then what mends it. Pure. */
export function answerText({ packet, node, backend, steps, fate, causes, unseen }: Answer): string {
  const head = `${packet.protocol} from ${packet.source} to ${targetText(packet)}, as node ${node} sees it (${backend})`;
  const lines = steps.flatMap(({ says, rule }, index) =>
    wrapped(`${says}${rule === undefined ? "" : ` [${rule}]`}`, `${String(index + 1).padStart(3)}  `),
  );
  const [culprit, ...others] = causes;
  const parts = [head, "", ...lines, ""];
  if (culprit === undefined) {
    const ends = {
      forward: "nothing wrong was found on this node: the packet is delivered",
      reject: "it is refused, as it should be",
      drop: "it is dropped, as it should be",
      pass: "nothing wrong was found on this node: the packet is not a Service's",
    };
    parts.push(ends[fate.is]);
    if (fate.is === "forward")
      parts.push(
        ...wrapped(
          "if it does not arrive: see whether the endpoint listens (turnout why --probe), and ask the same on the endpoint's node",
          "",
        ),
      );
  } else {
    parts.push(...causeLines(culprit.isSure === false ? "maybe" : "culprit", culprit));
  }
  if (others.length > 0) {
    parts.push("", "also found:", ...others.slice(0, OTHERS_SHOWN).flatMap(({ says }) => wrapped(says, "  - ")));
    if (others.length > OTHERS_SHOWN) parts.push(`  and ${others.length - OTHERS_SHOWN} more (-o json)`);
  }
  if (unseen.length > 0) parts.push("", ...wrapped(unseen.join("; "), "not looked at: "));
  return `${parts.join("\n")}\n`;
}

function causeLines(word: string, { id, says, show, mend }: Cause): readonly string[] {
  return [
    ...wrapped(`${says} [${id}]`, `${word}: `.padEnd(9)),
    ...(show === undefined ? [] : [`  look:  ${show}`]),
    ...wrapped(mend, "  mend:  "),
  ];
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
