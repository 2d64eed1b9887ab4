import { HIDING_LABELS, Store, type HiddenService } from "@turnout/core";
import { isRecord, type RawObject } from "./raw-object.ts";

/** The label by which a Service is left to another proxy. */
export const HIDING_LABEL: string = HIDING_LABELS.Service ?? "";

/** Of some objects, find the Services that are left to other proxies by their label. Pure; what can't be read is left out. */
export function hiddenAmong(objects: readonly RawObject[]): readonly HiddenService[] {
  return objects.filter(isLabelled).flatMap((object) => {
    const store = new Store();
    store.upsert("Service", object);
    const [key = ""] = store.serviceKeys();
    const service = store.service(key);
    return service === undefined ? [] : [{ service, label: HIDING_LABEL }];
  });
}

function isLabelled({ metadata: { labels } }: RawObject): boolean {
  return isRecord(labels) && Object.hasOwn(labels, HIDING_LABEL);
}
