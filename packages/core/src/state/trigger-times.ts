/** Services, and times of one Service, that are remembered between two looks. */
const TRIGGERS_MAX = 10_000;

/** When the endpoint changes not yet told were triggered (ms since the epoch), by Service. Bounded. */
export class TriggerTimes {
  #times = new Map<string, number[]>();

  /** Note a trigger; past the bound it is let go, it is only a sample of latency. */
  note(serviceKey: string, triggeredMs: number): void {
    const times = this.#times.get(serviceKey);
    if (times !== undefined && times.length < TRIGGERS_MAX) times.push(triggeredMs);
    else if (times === undefined && this.#times.size < TRIGGERS_MAX) this.#times.set(serviceKey, [triggeredMs]);
  }

  /** What was noted; begins anew. */
  drain(): ReadonlyMap<string, readonly number[]> {
    const times = this.#times;
    if (times.size > 0) this.#times = new Map<string, number[]>();
    return times;
  }
}
