/** Something the architecture check objects to. */
export interface Finding {
  /**
   * Which rule: `imports`, `layers`, `circles`, `published`, `purity`, `file-size`, `function-size`, `docs`, `shortcuts`, `names`, `citations`,
   * `backend-names`.
   */
  readonly rule: string;
  readonly path: string;
  /** 0 when the whole file is meant. */
  readonly line: number;
  /** What the finding is about, stable when lines move: an import's specifier, a function's or export's name. */
  readonly subject: string;
  readonly what: string;
  /** A warning is printed and doesn't fail. */
  readonly isWarning?: boolean;
}

/** The finding as it is written in architecture-allowed.txt. */
export function findingId(finding: Finding): string {
  return `${finding.rule} ${finding.path} ${finding.subject}`;
}

/** The finding as one line for people. */
export function describeFinding(finding: Finding): string {
  const place = finding.line === 0 ? finding.path : `${finding.path}:${finding.line}`;
  return `${finding.isWarning === true ? "warning" : "error"}: ${place}: [${finding.rule}] ${finding.what}`;
}

/** What is left once the allowed offenders are taken out. */
export interface Verdict {
  readonly errors: readonly Finding[];
  readonly warnings: readonly Finding[];
  /** Lines of the list that match nothing any more: they have to go, so that the list only shrinks. */
  readonly outdated: readonly string[];
}

/** Hold findings against the list of allowed offenders: a line each as {@link findingId} writes it, `#` starts a comment. */
export function judge(findings: readonly Finding[], allowedText: string): Verdict {
  const allowed = new Set(
    allowedText
      .split("\n")
      .map((line) => line.replace(/(?:^|\s)#.*/, "").trim())
      .filter((line) => line !== ""),
  );
  const errors = findings.filter((finding) => finding.isWarning !== true);
  const present = new Set(errors.map(findingId));
  return {
    errors: errors.filter((finding) => !allowed.has(findingId(finding))),
    warnings: findings.filter((finding) => finding.isWarning === true),
    outdated: [...allowed].filter((id) => !present.has(id)),
  };
}
