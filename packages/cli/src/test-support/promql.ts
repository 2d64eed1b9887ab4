import type { SyntaxNode } from "@lezer/common";
import { parser } from "@prometheus-io/lezer-promql";

/** A series that an expression selects. */
export interface Selected {
  readonly metric: string;
  /** Labels that a matcher names. */
  readonly labels: readonly string[];
}

/** What an expression of PromQL is about. */
export interface Expression {
  readonly selected: readonly Selected[];
  /** Labels that `by`, `without`, `on`, `ignoring`, `group_left` and `group_right` name. */
  readonly grouping: readonly string[];
}

/** Read an expression of PromQL. @throws {Error} where it can't be parsed, or selects series without naming a metric. */
export function readPromql(expression: string): Expression {
  const text = (node: SyntaxNode): string => expression.slice(node.from, node.to);
  const selected: Selected[] = [];
  const grouping: string[] = [];
  parser.parse(expression).iterate({
    enter({ node, type }) {
      if (type.isError) throw new Error(`no PromQL at ${node.from}: ${expression}`);
      if (type.name === "GroupingLabels") grouping.push(...node.getChildren("LabelName").map(text));
      if (type.name !== "VectorSelector") return;
      const name = node.getChild("Identifier");
      if (name === null) throw new Error(`a selector without a metric: ${expression}`);
      const matchers = node.getChild("LabelMatchers")?.getChildren("UnquotedLabelMatcher") ?? [];
      selected.push({ metric: text(name), labels: matchers.flatMap((matcher) => matcher.getChildren("LabelName").map(text)) });
    },
  });
  return { selected, grouping };
}
