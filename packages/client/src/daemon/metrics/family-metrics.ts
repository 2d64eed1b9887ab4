import type { IPFamily, SyncObserver } from "@turnout/core";

/** The label that tells families apart. */
export const FAMILY = ["ip_family"] as const;

/** Some metrics of each family: they hear of its sync loop what they count. */
export interface FamilyMetrics extends Partial<Omit<SyncObserver, "queued">> {
  queued?(event: Omit<Parameters<SyncObserver["queued"]>[0], "changes">): void;
  /** A family's loop starts: a counter that is absent until its first event can't be alerted on. */
  started?(family: IPFamily): void;
}
