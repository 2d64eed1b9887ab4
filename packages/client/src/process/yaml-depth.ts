import { isCollection, visit, type Document } from "yaml";

/** Levels of YAML that others wrote; Kubernetes' objects have a dozen. */
export const YAML_LEVELS_MAX = 64;

/** Find where a document is nested too deeply to be made plain data: keys that are mappings take a time that grows with the third power of their depth. */
export function deepPositionOf(document: Document): number | undefined {
  let position: number | undefined;
  visit(document, {
    Collection(_key, node, path) {
      if (path.filter(isCollection).length < YAML_LEVELS_MAX) return undefined;
      position = node.range?.[0] ?? 0;
      return visit.BREAK;
    },
  });
  return position;
}

/** Parse YAML; undefined: it is nested too deeply for the parser, which ends at some thousand levels, now with an error in the document, now by running out of stack. */
export function ifNotTooDeep<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
