import { describe, expect, it } from "vitest";
import { nftError } from "./errors.ts";

describe("nftError", () => {
  it.each([
    ["a missing object", "Error: No such file or directory\nadd element ip x nope {1.2.3.4}\n  ^^^^\n", "not_found"],
    ["an object that is there", "Error: Could not process rule: File exists\nadd chain\n", "already_exists"],
    ["no rights", "internal:0:0-0: Error: Could not process rule: Operation not permitted\n", "permission_denied"],
    ["an unknown word", "/dev/stdin:1:1-3: Error: syntax error, unexpected string\nfoo\n^^^\n", "host_unsupported"],
    ["no memory for the message", "Error: Could not process rule: No buffer space available\n", "tool_failed"],
    ["something new", "Error: the moon is in the wrong house\n", "tool_failed"],
    ["nothing at all", "", "tool_failed"],
    ["a misleading comment further down", 'Error: the moon\nadd rule ip x y comment "Error: No such file or directory"\n', "tool_failed"],
    ["a misleading comment on the line", 'Error: bad comment "No such file or directory"\n', "tool_failed"],
  ])("%s", (_name, output, code) => {
    expect(nftError(output, "apply").code).toBe(code);
  });
});
