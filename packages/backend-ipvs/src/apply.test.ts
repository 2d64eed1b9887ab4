import { ProxyError } from "@turnout/core/backend";
import { expect, it, vi } from "vitest";
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

it.each(["an endpoint comes", "the Service's scheduler changes"])(
  "fails as a whole where virtual servers are gone when %s",
  async (change) => {
    const host = createFakeHost();
    const proxy = await openProxy(host.world);
    await proxy.sync(SERVICE);
    host.ipvs.run({ verb: "delete-service", service: { family: "IPv4", protocol: "TCP", address: "10.96.0.1", port: 80 } });
    const wanted = change === "an endpoint comes" ? cart(["10.1.1.1", "10.1.1.2"]) : cart(["10.1.1.1"], { sessionAffinity: "ClientIP" });
    await expect(proxy.sync(wanted)).rejects.toMatchObject({ code: "not_found" });
    proxy.ledger.adopt(await proxy.backend.observe(new AbortController().signal));
    await proxy.sync(wanted);
    expect(proxy.ledger.differencesTo(await proxy.backend.observe(new AbortController().signal))).toEqual([]);
  },
);

it("leaves an endpoint of a virtual server that the kernel refused to itself", async () => {
  const host = createFakeHost();
  const proxy = await openProxy(host.world);
  const change = host.ipvs.change.bind(host.ipvs);
  const refuse = vi.spyOn(host.ipvs, "change").mockImplementation(async (operations, signal) => {
    const isRefused = operations.map(({ verb }) => verb === "add-service");
    const outcomes = (
      await change(
        operations.filter((_, index) => isRefused[index] !== true),
        signal,
      )
    ).values();
    return isRefused.map((refused) => (refused ? new ProxyError("permission_denied", "no") : outcomes.next().value));
  });
  await proxy.sync(SERVICE);
  await proxy.sync(cart(["10.1.1.1", "10.1.1.2"]));
  expect(proxy.ledger.failed.size).toBeGreaterThan(2);
  refuse.mockRestore();
});
