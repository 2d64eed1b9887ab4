import { ProxyError } from "@turnout/core";
import { expect, test } from "vitest";
import { notRunning } from "./not-running.ts";

const gone = new ProxyError("not_found", "no proxy answers (connect ECONNREFUSED)", { object: "127.0.0.1:10249, [::1]:10249" });

test("a proxy that is gone is looked for where its source is", () => {
  const cause = notRunning(gone, "kube");
  expect(cause).toMatchObject({ id: "not_running", isSure: false, show: ["ss -tlnp sport = :10249"] });
  expect(cause.commands).toEqual(["kubectl -n kube-system get pods -o wide", "journalctl -u turnout"]);
  expect(notRunning(gone, "file:/etc/services").commands).toEqual(["pgrep -af turnout", "journalctl -u turnout"]);
});

test("one that is late is told as who asked found it: to start it again would be no use where lo drops packets", () => {
  const hint = "something drops packets on loopback: see rules of firewalls about lo";
  const late = new ProxyError("timed_out", "connecting to the proxy timed out after 3 s", { object: "127.0.0.1:10249", hint });
  const cause = notRunning(late, "kube");
  expect(cause).toMatchObject({ fix: hint, show: ["ss -tlnp sport = :10249", "turnout doctor"] });
  expect(cause).not.toHaveProperty("commands");
  expect(cause.says).not.toContain("it may not run");
  // It may be at work all the same.
  expect(cause.says).toContain("So whether it runs can't be told");
});
