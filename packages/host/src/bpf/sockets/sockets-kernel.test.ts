import { needs } from "@turnout/house/needs";
import { describe, expect, it } from "vitest";
import { onStage } from "../../test-support/bpf-stage.ts";

const text = (pattern: RegExp): unknown => expect.stringMatching(pattern);
const execute = (scenario: string): Promise<unknown> => onStage("sockets-child.ts", scenario);

describe("sockets of a real kernel", needs("root", "netns", "ip"), () => {
  it("ends UDP sockets whose other end is gone, of both families, and no others", async () => {
    expect(await execute("udp")).toEqual({
      found: 2,
      isAlike: true,
      cookies: 2,
      none: [0, 0, 0],
      destroyed: 2,
      codes: ["ECONNABORTED", "ECONNABORTED"],
      again: [0, 0],
      said: "still there",
    });
  });

  it("ends TCP sockets", async () => {
    expect(await execute("tcp")).toEqual({ found: 1, destroyed: 1, code: "ECONNABORTED" });
  });

  it("ends sockets in another network namespace, and comes back", async () => {
    expect(await execute("elsewhere")).toEqual({
      said: ["connected", "ECONNABORTED"],
      found: [0, 1],
      destroyed: 1,
      isHome: true,
      // Cookies: ours, the pod's, ours again.
      namespaces: [0, 1, 0],
      gone: text(/^\[not_found\] a network namespace can't be opened \(ENOENT\): \/proc\/4194304\/ns\/net$/),
      noNamespace: "[not_found] a network namespace can't be entered, this is none (EINVAL): /proc/self/status",
    });
  });
});
