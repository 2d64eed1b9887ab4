import { createRequire } from "node:module";
import { win32 } from "node:path";
import { ProxyError } from "@turnout/core/backend";
import type koffiPackage from "koffi";
import type { HnsCalls, KindCalls } from "./calls.ts";

/** The package that calls C. */
export type Koffi = Pick<typeof koffiPackage, "load" | "decode">;
type Library = ReturnType<Koffi["load"]>;
type Call = ReturnType<Library["func"]>;

const load = createRequire(import.meta.url);

/** Of the host, what decides where its libraries are. */
export interface Windows {
  readonly platform: string;
  /** `SystemRoot` of the environment. */
  readonly systemRoot: string;
}

/**
 * Load koffi, and the libraries of Windows with it. On first use, as most processes that load this package run elsewhere.
 * @throws {ProxyError} `tool_missing` where this isn't Windows, or it has no HNS; `host_unsupported` where koffi has no build for this machine.
 */
export function loadHnsCalls({ platform, systemRoot }: Windows): HnsCalls {
  if (platform !== "win32")
    throw new ProxyError("tool_missing", "no Host Network Service can be asked", {
      hint: "it is a part of Windows; choose another backend",
    });
  return declareHnsCalls(loadKoffi(), systemRoot);
}

function loadKoffi(): Koffi {
  try {
    return load("koffi") as Koffi;
  } catch (error) {
    throw new ProxyError("host_unsupported", "koffi could not be loaded", {
      hint: "npm install koffi; with --os=win32 where an image is made elsewhere",
      cause: error,
    });
  }
}

/** Open a library by its full path: by its name alone, Windows would first look where others may have put one. */
function openLibrary(koffi: Koffi, systemRoot: string, name: string): Library {
  const path = win32.join(systemRoot, "System32", name);
  try {
    return koffi.load(path);
  } catch (error) {
    throw new ProxyError("tool_missing", `${path} could not be loaded`, {
      hint: "install the feature Containers of Windows: Install-WindowsFeature Containers, and restart the node",
      cause: error,
    });
  }
}

/**
 * Declare the functions to koffi. A wrong declaration here is memory of others, so the rehearsal under Wine calls each of them.
 * @source mingw-w64 computenetwork.h; hcsshim hcn/hcn.go and internal/hns/hns.go
 */
export function declareHnsCalls(koffi: Koffi, systemRoot: string): HnsCalls {
  const hcn = openLibrary(koffi, systemRoot, "computenetwork.dll");
  const hns = openLibrary(koffi, systemRoot, "vmcompute.dll");
  const ole = openLibrary(koffi, systemRoot, "ole32.dll");
  return {
    kinds: { network: kindCalls(hcn, "Network"), endpoint: kindCalls(hcn, "Endpoint"), loadBalancer: kindCalls(hcn, "LoadBalancer") },
    createEndpoint: onThread(
      hcn.func("int32_t HcnCreateEndpoint(void *network, const void *id, str16 settings, _Out_ void **handle, _Out_ void **record)"),
    ),
    deleteEndpoint: onThread(hcn.func("int32_t HcnDeleteEndpoint(const void *id, _Out_ void **record)")),
    createLoadBalancer: onThread(
      hcn.func("int32_t HcnCreateLoadBalancer(const void *id, str16 settings, _Out_ void **handle, _Out_ void **record)"),
    ),
    modifyLoadBalancer: onThread(hcn.func("int32_t HcnModifyLoadBalancer(void *handle, str16 settings, _Out_ void **record)")),
    deleteLoadBalancer: onThread(hcn.func("int32_t HcnDeleteLoadBalancer(const void *id, _Out_ void **record)")),
    call: onThread(hns.func("int32_t HNSCall(str16 method, str16 path, str16 body, _Out_ void **response)")),
    textAt: (pointer) => koffi.decode(pointer, "char16_t", -1) as string,
    free: ole.func("void CoTaskMemFree(void *memory)"),
  };
}

function kindCalls(hcn: Library, name: string): KindCalls {
  return {
    enumerate: onThread(hcn.func(`int32_t HcnEnumerate${name}s(str16 query, _Out_ void **ids, _Out_ void **record)`)),
    open: onThread(hcn.func(`int32_t HcnOpen${name}(const void *id, _Out_ void **handle, _Out_ void **record)`)),
    properties: onThread(
      hcn.func(`int32_t HcnQuery${name}Properties(void *handle, str16 query, _Out_ void **properties, _Out_ void **record)`),
    ),
    close: onThread(hcn.func(`int32_t HcnClose${name}(void *handle)`)),
  };
}

function onThread(call: Call): (...args: readonly unknown[]) => Promise<number> {
  return (...args) =>
    new Promise((resolve, reject) => {
      const done = (error: Error | null, result: number): void => {
        if (error === null) resolve(result);
        else reject(error);
      };
      (call.async as (...all: unknown[]) => unknown)(...args, done);
    });
}
