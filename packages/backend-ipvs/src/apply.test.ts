import { expect, it } from "vitest";
import { cart, openProxy } from "./test-support/proxy.ts";
import { createFakeHost } from "./testing/index.ts";

const SERVICE = cart(["10.1.1.1"]);

/** What a first sync says when one of its changes fails, and what the next one then does. */
async function failAfter(afterChanges: number): Promise<{ readonly error: string; readonly next: string }> {
  const host = createFakeHost();
  const proxy = await openProxy(host.world);
  host.setFault({ afterChanges, when: "before" });
  const error = await proxy.sync(SERVICE).then(
    () => "",
    (thrown: unknown) => String(thrown),
  );
  host.setFault(undefined);
  return { error, next: (await openProxy(host.world)).planText(SERVICE) };
}

it("says which step of a plan failed, and the next sync goes on there", async () => {
  const failures = await Promise.all(Array.from({ length: 12 }, (_, count) => failAfter(count)));
  const inFill = failures.find(({ error }) => /in step \d+ of \d+ \(fill\)$/.test(error));
  expect(inFill?.next).toMatch(/^ipset create/m);
  const inRestore = failures.find(({ error }) => /in step \d+ of \d+ \(restore\)/.test(error));
  expect(inRestore?.next).toMatch(/^\*nat$/m);
  expect(inRestore?.next).not.toMatch(/^(?:ipset (?:create|add)|ipvs add TCP 10\.96\.0\.1:80 scheduler|sysctl)/m);
});
