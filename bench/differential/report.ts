import { stringify } from "yaml";
import { answersOf, verdictFor } from "./compare.ts";
import type { Compared, Explanation } from "./compare.ts";
import type { Difference } from "./differ.ts";
import type { World } from "./world.ts";

/** Write a difference in one line. Pure. */
export function differenceText({ phase, about, turnout, kubeProxy }: Difference): string {
  return `phase ${phase}, ${about}: Turnout ${turnout.join(", ")}; kube-proxy ${kubeProxy.join(", ")}`;
}

/** Write why a difference is permitted. Pure. */
export function explanationText(explanation: NonNullable<Explanation>): string {
  if ("rule" in explanation) return explanation.rule;
  return "variants" in explanation ? `variants ${explanation.variants.join(", ")}` : `${explanation.chance}: which endpoint is chance`;
}

/** Write a world as manifests, with what was asked, the answers and what docs/rules.md says. Pure. */
export function worldText({ phases }: World, difference: Difference, compared: Compared): string {
  const { phase, again } = difference;
  const question = "question" in again ? again.question : undefined;
  const objects = phases[phase] ?? [];
  const verdict = question === undefined ? undefined : verdictFor(compared, objects, question);
  const says =
    question === undefined || verdict === undefined
      ? []
      : [`# docs/rules.md: ${answersOf(verdict, question).join(", ")} (${verdict.because.join(", ")})`];
  const manifests = phases.flatMap((some, index) => [
    `# phase ${index}`,
    ...some.map((object) => `---\n${stringify(object, { flowCollectionPadding: true, lineWidth: 0 })}`.trimEnd()),
  ]);
  return [`# ${differenceText(difference)}`, ...says, `# configuration: ${JSON.stringify(compared.settings)}`, ...manifests].join("\n");
}
