/** How one test ended. */
export interface TestResult {
  /** As the suite has it, labels included. */
  readonly name: string;
  readonly state: "passed" | "failed" | "skipped";
  /** Of a failure, or of a test that left itself out. */
  readonly why?: string;
  /** It passed when it was played again, alone; this is how it had failed among the others. */
  readonly failedFirst?: string;
}

interface SpecReport {
  readonly ContainerHierarchyTexts?: readonly string[] | null;
  readonly LeafNodeType: string;
  readonly LeafNodeText: string;
  readonly State: string;
  readonly Failure?: { readonly Message?: string } | null;
}

/** A line of it is for people; Gomega's own last lines say what was expected. */
const WHY_CHARACTERS_MAX = 300;

/**
 * Read the JSON report of a Ginkgo run: what ran, or left itself out with a reason; what the filters left out is not in it. Pure.
 * A failure outside of any test, such as in the suite's preparation, is a failed test under its own name.
 */
export function readReport(text: string): readonly TestResult[] {
  const suites = JSON.parse(text) as readonly { readonly SpecReports: readonly SpecReport[] | null }[];
  return suites
    .flatMap(({ SpecReports: specs }) => specs ?? [])
    .flatMap((spec): readonly TestResult[] => {
      const name = [...(spec.ContainerHierarchyTexts ?? []), spec.LeafNodeText].filter((part) => part !== "").join(" ");
      const why = plainWhy(spec.Failure?.Message);
      if (spec.LeafNodeType !== "It") {
        if (spec.State === "passed" || spec.State === "skipped") return [];
        return [{ name: `${spec.LeafNodeType} ${name}`.trim(), state: "failed", why: why ?? spec.State }];
      }
      if (spec.State === "passed") return [{ name, state: "passed" }];
      if (spec.State === "skipped" || spec.State === "pending")
        return why === undefined || why === "" ? [] : [{ name, state: "skipped", why }];
      return [{ name, state: "failed", why: why ?? spec.State }];
    })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** In one line, without paths of this machine. */
function plainWhy(message: string | undefined): string | undefined {
  const plain = message?.replaceAll(/\S*kubectl --kubeconfig=\S+/g, "kubectl").replaceAll(/\s+/g, " ");
  return plain?.trim().slice(0, WHY_CHARACTERS_MAX);
}

/** Results with those of a second run, of what had failed: what passed there has passed, and keeps how it failed first. Pure. */
export function withSecondRun(first: readonly TestResult[], second: readonly TestResult[]): readonly TestResult[] {
  const passed = new Set(second.filter(({ state }) => state === "passed").map(({ name }) => name));
  return first.map((test) =>
    test.state === "failed" && passed.has(test.name) ? { name: test.name, state: "passed", failedFirst: test.why ?? "" } : test,
  );
}

/** A focus on the tests that failed, and nothing else but those whose names go on where one of theirs ends. Pure. */
export function focusOn(tests: readonly TestResult[]): string {
  return tests.map(({ name }) => name.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("|");
}
