import { test } from "node:test";
import { describeBackend } from "@turnout/conformance";
import table from "../src/index.ts";
import { createFakeHost } from "../src/testing.ts";

// Leave `breakages` out and the kit also shows that it would notice each defect it knows: a minute more.
describeBackend(table, createFakeHost, { it: test, steps: 200, breakages: [] });
