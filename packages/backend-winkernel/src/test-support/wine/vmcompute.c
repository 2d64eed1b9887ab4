// vmcompute.dll as far as the backend calls it: HNSCall for the version.
#include "hns-stub.h"

HRESULT WINAPI HNSCall(PCWSTR method, PCWSTR path, PCWSTR body, PWSTR *response);

HRESULT WINAPI HNSCall(PCWSTR method, PCWSTR path, PCWSTR body, PWSTR *response) {
  StubNote("HNSCall", path);
  *response = NULL;
  if (wcscmp(method, L"GET") != 0 || wcscmp(path, L"/globals/version") != 0 || *body != 0) return E_INVALIDARG;
  *response = StubText(L"{\"Success\":true,\"Output\":{\"Major\":15,\"Minor\":5}}");
  return S_OK;
}
