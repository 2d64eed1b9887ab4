import { ProxyError } from "@turnout/core";
import { expect, test } from "vitest";
import { TOY_BACKEND, ToyEnvironment } from "../test-support/toy-environment.ts";

const LEFTOVERS = 'leftovers: async () => [{ what: "rules of the toy", by: "turnout", remove: async () => undefined }],';

test("a third party's backend that is named and has rules in force is the one in use", async () => {
  const env = await ToyEnvironment.create();
  const noTools = (): never => {
    throw new ProxyError("tool_missing", "no tools are here");
  };
  env.exec = { run: async () => noTools(), open: noTools };
  try {
    const named = await env.file("toy.mjs", TOY_BACKEND.replace("plan: (", `${LEFTOVERS} plan: (`));
    const { out, err } = await env.run("doctor", "--backend", named);
    expect(err).toBe("");
    expect(out).toMatch(/^backends {2}toy +in use$/m);
    const idle = await env.file("idle.mjs", TOY_BACKEND);
    expect((await env.run("doctor", "--backend", idle)).out).toMatch(/^backends {2}toy +can run$/m);
  } finally {
    await env.remove();
  }
});
