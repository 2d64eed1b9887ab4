import { expect, it } from "vitest";
import { errno } from "../errno.ts";
import { createCounter, deleteCounter, readCounter, type AccountingChannel } from "./accounting.ts";

const NLM_F_CREATE = 0x400;

/** A kernel that answers every request alike, and what it was asked. */
function kernel(outcome: number, answer?: Buffer): AccountingChannel & { readonly asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    request: (type, payload, onReply, flags) => {
      asked.push(`${type.toString(16)} ${flags === NLM_F_CREATE ? "create" : "plain"} ${Buffer.from(payload).toString("hex")}`);
      if (answer !== undefined) onReply?.(0x700, answer);
      return Promise.resolve(outcome);
    },
  };
}

/** `nfgenmsg`, then attribute 1: length 6, type 1, "a" and a zero byte, padded. */
const NAMED_A = "000000000600010061000000";

it("asks in nfnetlink_acct's words", async () => {
  const channel = kernel(0);
  await createCounter(channel, "a");
  await readCounter(channel, "a");
  await deleteCounter(channel, "a");
  expect(channel.asked).toEqual([`700 create ${NAMED_A}`, `701 plain ${NAMED_A}`, `703 plain ${NAMED_A}`]);
});

it("reads packets in network order; a counter that is not there is undefined", async () => {
  const packets = Buffer.from(`${NAMED_A}0c0002000000000100000002`, "hex");
  expect(await readCounter(kernel(0, packets), "a")).toBe(2 ** 32 + 2);
  expect(await readCounter(kernel(errno("ENOENT")), "a")).toBeUndefined();
});

it("takes a counter that is there, and one that is in use, as they are", async () => {
  for (const act of [createCounter, deleteCounter]) expect(await act(kernel(errno("EBUSY")), "a")).toBeUndefined();
  expect(await deleteCounter(kernel(errno("ENOENT")), "a")).toBeUndefined();
});

it.each([
  ["EINVAL", "host_unsupported"],
  ["EPERM", "permission_denied"],
  ["ENOMEM", "tool_failed"],
] as const)("%s is %s", async (name, code) => {
  for (const act of [readCounter, createCounter, deleteCounter])
    await expect(act(kernel(errno(name)), "a")).rejects.toMatchObject({ code });
});

it("a name that is too long is refused before the kernel would cut it", async () => {
  await expect(createCounter(kernel(0), "x".repeat(32))).rejects.toMatchObject({ code: "invalid_object" });
});
