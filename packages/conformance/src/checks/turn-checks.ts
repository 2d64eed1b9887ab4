import { checkEnd } from "./ending.ts";
import type { Findings } from "./findings.ts";
import { syncAndNote } from "./health-checks.ts";
import { withBackend } from "../runner/changed-subject.ts";
import { Runner } from "../runner/runner.ts";
import type { RunnerOptions } from "../runner/runner.ts";
import { refs, service, slices } from "../runner/short.ts";
import { STAGE_OBJECTS } from "../runner/stage.ts";
import type { Subject } from "../runner/subject.ts";

const PLACE = { scenario: "turns that are over at once", rules: ["R-58"] };

/**
 * Look whether a backend that has no time carries on where it was: with every turn over as soon as it begins, changes must end where they end
 * otherwise, and what it says it has deferred must be as it was.
 *
 * Edges: a backend that never defers does all of it in one turn, which is right, too.
 */
export async function checkTurns(subject: Subject, setting: RunnerOptions, findings: Findings): Promise<void> {
  if (findings.isFull) return;
  const place = (step: string): void => void (findings.checkpoint = { ...PLACE, step });
  place("the start");
  try {
    const runner = await Runner.start(subject, { ...setting, turnMs: 0 }, STAGE_OBJECTS);
    for (const number of [1, 2, 3]) put(runner, number, ["pod-1-1", "pod-2-1"]);
    place("Services come");
    await syncAndNote(runner, findings);
    place("one goes, one comes, one has other endpoints");
    for (const ref of refs("web-1")) runner.remove(ref);
    put(runner, 2, ["pod-2-1"]);
    put(runner, 4, ["pod-1-1"]);
    await syncAndNote(runner, findings);
    place("afterwards");
    await checkEnd(runner, () => Runner.start(subject, setting, runner.objects), findings);
    await runner.close();
  } catch (error) {
    findings.threw("the host", "IPv4", error);
  }
}

/** Addresses of a Service, and of one with twice as many. */
const ADDRESSES = 50;
/** How much more the second may cost. */
const TIMES_MAX = 3;

/**
 * Look whether the work of rendering grows in proportion to the addresses of a Service: reads of the row's list are counted. A backend that looks
 * through all of them for each keeps everybody waiting for one Service with thousands.
 */
export async function checkRenderWork(subject: Subject, setting: RunnerOptions, findings: Findings): Promise<void> {
  if (findings.isFull) return;
  findings.checkpoint = { scenario: "a Service with many addresses", step: "it gets twice as many", rules: [] };
  let reads = 0;
  const get = (list: object, field: string | symbol): unknown => {
    reads++;
    return Reflect.get(list, field);
  };
  const counting = withBackend((inner) => ({
    render: (row, context) =>
      inner.render({ ...row, destinations: new Proxy<typeof row.destinations>(row.destinations, { get }) }, context),
  }));
  try {
    const runner = await Runner.start(counting(subject), setting, STAGE_OBJECTS);
    const readsWith = async (count: number): Promise<number> => {
      const externalIPs = Array.from({ length: count }, (_, index) => `203.0.113.${index + 1}`);
      for (const raw of [service("wide", { number: 1, spec: { externalIPs } }), ...slices("wide", ["pod-1-1"])]) runner.put(raw);
      reads = 0;
      await runner.sync();
      return reads;
    };
    const [few, many] = [await readsWith(ADDRESSES), await readsWith(2 * ADDRESSES)];
    await runner.close();
    if (many <= TIMES_MAX * few) return;
    const expected = `about twice as many as with half of the addresses: ${few}`;
    findings.add({
      kind: "contract",
      family: "IPv4",
      what: "looks at a row's addresses while it is rendered",
      expected,
      got: String(many),
    });
  } catch (error) {
    findings.threw("the host", "IPv4", error);
  }
}

function put(runner: Runner, number: number, pods: readonly string[]): void {
  const name = `web-${number}`;
  const spec = { type: "NodePort", sessionAffinity: number === 3 ? "ClientIP" : "None" };
  for (const raw of [service(name, { number, ways: ["nodePort"], spec }), ...slices(name, pods)]) runner.put(raw);
}
