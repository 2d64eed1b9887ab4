import { ProxyError } from "@turnout/core/backend";
import type { IPFamily } from "@turnout/core/backend";
import type { IpsetTool } from "@turnout/host/ipset";
import { setName } from "../names.ts";
import type { SetBase } from "../names.ts";
import type { EntryObject, SetObject } from "../objects.ts";
import {
  addEntryLine,
  entryId,
  exchangeLines,
  isSmaller,
  largerSetLines,
  makeSetLine,
  memberNameOf,
  removeLine,
  setNameOf,
} from "../sets.ts";
import type { Results } from "./results.ts";

/** Sets whose members get through to endpoints, straight or translated. */
const ADMITTING: readonly SetBase[] = ["KUBE-LOAD-BALANCER", "TURNOUT-LOCAL", "TURNOUT-OWN"];

/** Makes, fills and empties one family's sets; what the kernel refuses fails by itself. */
export class MemberWriter {
  readonly #tool: IpsetTool;
  readonly #family: IPFamily;

  constructor(tool: IpsetTool, family: IPFamily) {
    this.#tool = tool;
    this.#family = family;
  }

  /** Put members into sets, and have a set that is full hold more. */
  async fill(sets: readonly SetObject[], entries: readonly EntryObject[], results: Results, signal: AbortSignal): Promise<void> {
    // By themselves: of a set that is somebody else's, of another type, the tool can't read an entry, and would say so of all lines together.
    const counts = Map.groupBy(entries, setNameOf);
    const make = (set: SetObject): string => makeSetLine(set, counts.get(set.key)?.length ?? 0, this.#family);
    for (const [object, error] of await this.#restore(sets, make, signal)) results.note(object, error);
    const present = entries.filter((entry) => {
      const missing = this.#missingFor(entry, results);
      if (missing !== undefined) results.note(entry, new ProxyError("tool_failed", missing, { object: entry.key }));
      return missing === undefined;
    });
    const outcomes = await this.#restore(present, addEntryLine, signal);
    const full = outcomes.flatMap(([object, error]) => (error?.code === "limit_reached" ? [object] : []));
    for (const name of new Set(full.map(setNameOf))) await this.#enlarge(name, signal);
    const again = new Map(await this.#restore(full, addEntryLine, signal));
    for (const [object, error] of outcomes) results.note(object, again.has(object) ? again.get(object) : error);
  }

  /**
   * What a member must not be without, if it is: its set; a virtual server that the kernel refused, so that the filter of host ports goes on to
   * count; the word that sources are restricted, so that nobody is admitted unasked.
   */
  #missingFor(entry: EntryObject, { absent, failed }: Results): string | undefined {
    const member = memberNameOf(entry);
    if (failed.has(`set ${setNameOf(entry)}`)) return "its set can't be made";
    if (absent.has(member)) return "its virtual server was refused";
    if (!ADMITTING.some((base) => setNameOf(entry) === this.#nameOf(base))) return undefined;
    return failed.has(entryId(this.#nameOf("KUBE-LOAD-BALANCER-FW"), member)) ? "its source ranges were refused" : undefined;
  }

  #nameOf(base: SetBase): string {
    return setName(base, this.#family);
  }

  /** Take members out and sets away. An address that couldn't be taken off the device stays a member, so that no port of the host answers there. */
  async empty(entries: readonly EntryObject[], sets: readonly SetObject[], results: Results, signal: AbortSignal): Promise<void> {
    const going = entries.filter((entry) => {
      const stays = setNameOf(entry) === this.#nameOf("KUBE-IPVS-IPS") && results.failed.has(`address ${memberNameOf(entry)}`);
      if (stays) results.note(entry, new ProxyError("tool_failed", "its address could not be removed", { object: entry.key }));
      return !stays;
    });
    for (const [object, error] of await this.#restore([...going, ...sets], removeLine, signal))
      // What is gone already is gone.
      if (error?.code !== "not_found") results.note(object, error);
  }

  /** Have a set that is full, with room for as many entries as kube-proxy's, hold more; rules that name it see all of its entries at every moment. */
  async #enlarge(name: string, signal: AbortSignal): Promise<void> {
    const saved = (await this.#tool.save([name], signal)).get(name);
    if (saved === undefined || !isSmaller(name, saved, this.#family)) return;
    const outcomes = await this.#tool.restore(largerSetLines(name, saved.entries, this.#family), signal);
    // A set that has not all of it is not put in the place of the other.
    if (outcomes.slice(1).every((error) => error === undefined)) await this.#tool.restore(exchangeLines(name, this.#family), signal);
  }

  async #restore<Kind extends SetObject | EntryObject>(
    objects: readonly Kind[],
    lineOf: (object: Kind) => string,
    signal: AbortSignal,
  ): Promise<readonly (readonly [Kind, ProxyError | undefined])[]> {
    if (objects.length === 0) return [];
    const outcomes = await this.#tool.restore(objects.map(lineOf), signal);
    return objects.map((object, index) => [object, outcomes[index]] as const);
  }
}
