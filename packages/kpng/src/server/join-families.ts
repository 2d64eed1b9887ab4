import { familyOf } from "@turnout/core";

/** An address that serves, before it is joined with the pod's address of the other family. */
export interface Draft {
  readonly ip: string;
  readonly podName: string | undefined;
  /** Everything but the address that is said of it: what differs in this can't be one endpoint. */
  readonly content: string;
}

/** Addresses that are one endpoint. */
export interface Joined<D extends Draft> {
  readonly ips: readonly string[];
  readonly draft: D;
  /** Given to one endpoint of a pod: paths are made of it, and two of one name would take turns at one path. */
  readonly podName: string | undefined;
}

/**
 * Join the addresses that one pod has in both families, where all else is equal.
 *
 * Shape: the result hangs on the drafts alone, not on their order. kpng's own server sends them apart, under one path.
 */
export function joinFamilies<D extends Draft>(drafts: readonly D[]): readonly Joined<D>[] {
  const joined: { ips: string[]; draft: D; podName: string | undefined }[] = [];
  const ofPod = new Map<string, typeof joined>();
  for (const draft of inOrder(drafts)) {
    const { ip, podName, content } = draft;
    const siblings = podName === undefined ? [] : (ofPod.get(podName) ?? []);
    const twin = siblings.find((one) => one.draft.content === content && one.ips.every((other) => familyOf(other) !== familyOf(ip)));
    if (twin !== undefined) {
      twin.ips.push(ip);
      continue;
    }
    const entry = { ips: [ip], draft, podName: siblings.length === 0 ? podName : undefined };
    joined.push(entry);
    if (podName !== undefined) ofPod.set(podName, [...siblings, entry]);
  }
  return joined;
}

function inOrder<D extends Draft>(drafts: readonly D[]): readonly D[] {
  const rank = ({ ip, content }: Draft): string => `${familyOf(ip)} ${ip} ${content}`;
  return drafts.toSorted((a, b) => (rank(a) < rank(b) ? -1 : 1));
}
