import { ProxyError } from "@turnout/core";
import type { ErrorCode } from "@turnout/core";
import { OwnCommits } from "@turnout/host";
import { expect, test } from "vitest";
import { dropNftTable } from "./drop-table.ts";

const dropped = (code: ErrorCode): Promise<void> =>
  dropNftTable({ own: new OwnCommits(), netlink: { deleteNftTable: () => Promise.reject(new ProxyError(code, "no")) } }, "ip", "turnout");

test.each<ErrorCode>(["not_found", "host_unsupported"])("a table that can't be there (%s) is dropped", async (code) => {
  await expect(dropped(code)).resolves.toBeUndefined();
});

test("a table that stays is an error", async () => {
  await expect(dropped("permission_denied")).rejects.toMatchObject({ code: "permission_denied" });
});
