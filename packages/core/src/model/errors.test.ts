import { describe, expect, it } from "vitest";
import { invariant, ProxyError } from "./errors.ts";
import type { ErrorCode } from "./errors.ts";

const CODES: Readonly<Record<ErrorCode, boolean>> = {
  invalid_object: false,
  host_unsupported: false,
  tool_missing: false,
  permission_denied: false,
  tool_failed: true,
  not_found: false,
  already_exists: false,
  limit_reached: true,
  timed_out: true,
  canceled: false,
  restart_needed: false,
  feed_lost: true,
};

describe("the one error", () => {
  it.each(Object.entries(CODES))("%s: retrying may help: %s", (code, isRetryable) => {
    const error = new ProxyError(code as ErrorCode, "x");
    expect([error.retryable, ProxyError.is(error, code as ErrorCode), ProxyError.is(error)]).toEqual([isRetryable, true, true]);
  });

  it.each([
    ["what alone", {}, "[tool_failed] nft said no"],
    ["and which object", { object: "Service shop/cart" }, "[tool_failed] nft said no: Service shop/cart"],
    ["and what to try", { object: "Service shop/cart", hint: "look at it" }, "[tool_failed] nft said no: Service shop/cart: look at it"],
  ])("is one line: %s", (_name, details, message) => expect(new ProxyError("tool_failed", "nft said no", details).message).toBe(message));

  it("is known across two copies of the package, and nothing else is", () => {
    const copy = Object.assign(new Error("x"), { name: "ProxyError", code: "canceled" });
    expect([ProxyError.is(copy), ProxyError.is(copy, "canceled"), ProxyError.is(copy, "timed_out")]).toEqual([true, true, false]);
    for (const other of [undefined, null, "ProxyError", {}, new Error("x"), { name: "ProxyError" }, { name: "ProxyError", code: "ENOENT" }])
      expect(ProxyError.is(other)).toBe(false);
  });

  it("from keeps one that is one already, and wraps the rest with its cause", () => {
    const own = new ProxyError("not_found", "x");
    expect(ProxyError.from(own, "tool_failed", "y")).toBe(own);
    const cause = new Error("boom");
    const wrapped = ProxyError.from(cause, "tool_failed", "nft");
    expect([wrapped.message, wrapped.cause, wrapped.code]).toEqual(["[tool_failed] nft (boom)", cause, "tool_failed"]);
    expect(ProxyError.from("text", "tool_failed", "nft").message).toBe("[tool_failed] nft (text)");
  });
});

describe("invariants", () => {
  it("end what must not go on", () => {
    expect(() => invariant(false, "two of one")).toThrow("invariant violated: two of one");
    expect(() => invariant(true, "fine")).not.toThrow();
  });
});
