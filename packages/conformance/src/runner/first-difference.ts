import type { Plain } from "@turnout/core";

/** Values longer than this are cut. */
const TEXT_MAX = 80;

/**
 * Say where two values differ first, and how: `rules[0].to: "reject" → "drop"`. Pure.
 *
 * Edges: "" where they are equal; a member that one of them lacks is `absent` there; members are looked at in the order of `before`, then of `after`.
 */
export function firstDifference(before: Plain | undefined, after: Plain | undefined, path: string = ""): string {
  if (before === after) return "";
  if (typeof before !== "object" || typeof after !== "object" || Array.isArray(before) !== Array.isArray(after))
    return `${path === "" ? "value" : path}: ${textOf(before)} → ${textOf(after)}`;
  const isList = Array.isArray(before);
  const [had, has] = [before, after] as readonly Readonly<Record<string, Plain | undefined>>[];
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const member = isList ? `${path}[${name}]` : path === "" ? name : `${path}.${name}`;
    const found = firstDifference(had?.[name], has?.[name], member);
    if (found !== "") return found;
  }
  return "";
}

function textOf(value: Plain | undefined): string {
  if (value === undefined) return "absent";
  const text = JSON.stringify(value);
  return text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text;
}
