/** Something the architecture check objects to. */
export interface Finding {
  /**
   * Which rule: `imports`, `layers`, `purity`, `docs`, `folders`, `swallowed`, `citations`, `pages`, `backend-names`.
   */
  readonly rule: string;
  readonly path: string;
  /** 0 when the whole file is meant. */
  readonly line: number;
  /** What the finding is about: an import's specifier, an export's name. */
  readonly subject: string;
  readonly what: string;
}

/** The finding as one line for people. */
export function describeFinding(finding: Finding): string {
  const place = finding.line === 0 ? finding.path : `${finding.path}:${finding.line}`;
  return `error: ${place}: [${finding.rule}] ${finding.what}`;
}
