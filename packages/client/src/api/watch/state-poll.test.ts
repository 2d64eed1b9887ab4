import { expect, test } from "vitest";
import { flushPromises } from "../../test-support/toys.ts";
import { createStatePoll } from "./state-poll.ts";

test("a poll that is asked by somebody who has gone already begins nothing that could fail unheard", async () => {
  const poll = createStatePoll("nonsense", { nodeName: "node1" });
  await expect(poll.next("", 0, AbortSignal.abort())).rejects.toThrow(/^\[canceled\]/);
  await flushPromises();
  await expect(poll.next("", 0)).rejects.toThrow(/^\[invalid_object\] it is no address: "nonsense"/);
  await poll.close();
  await expect(poll.next("", 0)).rejects.toThrow(/^\[canceled\]/);
});
