import { ProxyError } from "@turnout/core/backend";
import type { FuzzTarget } from "@turnout/house/fuzz";
import { readEndpoint, readIds, readLoadBalancer, readNetwork, readVersion } from "../hns/replies.ts";

/** One answer of HNS, taken for each that it could be. */
function readReplies(input: Buffer): void {
  const json = input.toString("utf8");
  for (const read of [readIds, readNetwork, readEndpoint, readLoadBalancer, readVersion]) {
    try {
      read(json);
    } catch (error) {
      if (!ProxyError.is(error)) throw error;
    }
  }
}

/** What reads the Host Network Service's answers. */
export const FUZZ_TARGETS: readonly FuzzTarget[] = [{ name: "hns-replies", form: "json", run: readReplies }];
