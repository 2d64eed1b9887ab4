/** How many lines of the verifier's complaint are told. */
const COMPLAINT_LINES = 4;

/** What the verifier says against a program, without the way there. */
export interface VerifierComplaint {
  /** E.g. `R1 invalid mem access 'map_value_or_null'`. */
  readonly reason: string;
  /** The line of C it is about, where the object has them. */
  readonly source: string | undefined;
  /** The instruction it is about. */
  readonly instruction: string | undefined;
}

const INSTRUCTION = /^\d+: \([0-9a-f]{2}\) /;
const STATE = /^(?:\d+: (?!\([0-9a-f]{2}\))|from \d+ to \d+|; |R\d+=| *arg#\d|func#\d+ @\d+|Live regs before insn:)/;
const STATISTICS = /^(?:processed \d+ insns|verification time|stack depth|mark_precise|max_states_per_insn|BPF program is too large)/;

/**
 * Take the end out of a verifier's log: what it complains of, and at which line and instruction. Pure.
 *
 * Edges: undefined for an empty log. Of a log that was cut or is of an unknown form the last lines are the reason.
 */
export function complaintOf(log: string): VerifierComplaint | undefined {
  const lines = log.split("\n").map((line) => line.trimEnd());
  const said = lines.filter((line) => line !== "" && (!STATISTICS.test(line) || line.startsWith("BPF program is too large")));
  if (said.length === 0) return undefined;
  const at = said.findLastIndex((line) => INSTRUCTION.test(line));
  const after = said.slice(at + 1).filter((line) => !STATE.test(line));
  const reason = (after.length > 0 ? after : said).slice(-COMPLAINT_LINES).join("; ");
  return {
    reason,
    source: said
      .slice(0, Math.max(0, at))
      .findLast((line) => line.startsWith("; "))
      ?.slice(2)
      .replace(/ @ [^@]*$/, ""),
    instruction: said[at],
  };
}

/** Write it in one line. Pure. */
export function complaintText({ reason, source, instruction }: VerifierComplaint): string {
  const place = [source === undefined ? undefined : `"${source.trim()}"`, instruction].filter((part) => part !== undefined).join(", ");
  return place === "" ? reason : `${reason} (at ${place})`;
}
