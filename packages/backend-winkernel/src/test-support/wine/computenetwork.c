// computenetwork.dll for tests under Wine: networks, endpoints and load balancers in memory, and in the file objects.txt of the folder that
// TURNOUT_HNS_STUB names, so that the next process finds them. Its calls are in journal.txt there, and at the end of the process, in left.txt, what it leaves. It is compiled against mingw-w64's computenetwork.h,
// so its functions have the types of Windows. Of HNS's own behaviour it has nothing: what HNS refuses it is told to refuse by StubFail, and testing/fake-hns.ts knows it.
#define COBJMACROS
#include "hns-stub.h"
#include <computenetwork.h>
#include <objidl.h>
#include <stdio.h>
#include <wchar.h>

#define HCN_NETWORK_NOT_FOUND ((HRESULT)0x803B0001)
#define HCN_ENDPOINT_NOT_FOUND ((HRESULT)0x803B0002)
#define HCN_INVALID_JSON ((HRESULT)0x803B001B)
#define NOT_FOUND HRESULT_FROM_WIN32(ERROR_NOT_FOUND)
#define TEXTS_MAX 4096
#define GUID_CHARS 37

enum kind { NETWORK = 'N', ENDPOINT = 'E', BALANCER = 'L' };

struct object {
  char kind;
  GUID id;
  wchar_t *json;
  struct object *next;
};

struct handle {
  char kind;
  GUID id;
  struct handle *next;
};

static CRITICAL_SECTION lock;
static struct object *objects;
static struct handle *handles;
static void *texts[TEXTS_MAX];
static int texts_count, handles_count, bad_handles, made;
static wchar_t fail_function[64], slow_function[64], folder[MAX_PATH];
static DWORD slow_ms;
static HRESULT fail_result;

// ---- Memory that callers free: CoTaskMemFree tells this spy; free() of C, which in Wine has the same heap, doesn't.

static HRESULT WINAPI spy_query(IMallocSpy *self, REFIID iid, void **out) {
  (void)iid;
  *out = self;
  return S_OK;
}
static ULONG WINAPI spy_ref(IMallocSpy *self) { (void)self; return 1; }
static SIZE_T WINAPI spy_size(IMallocSpy *self, SIZE_T size) { (void)self; return size; }
static void *WINAPI spy_after(IMallocSpy *self, void *memory) { (void)self; return memory; }
static void *WINAPI spy_before_free(IMallocSpy *self, void *memory, BOOL spied) {
  (void)self;
  (void)spied;
  EnterCriticalSection(&lock);
  for (int index = 0; index < texts_count; index++) {
    if (texts[index] != memory) continue;
    texts[index] = texts[--texts_count];
    break;
  }
  LeaveCriticalSection(&lock);
  return memory;
}
static void WINAPI spy_after_free(IMallocSpy *self, BOOL spied) { (void)self; (void)spied; }
static SIZE_T WINAPI spy_realloc(IMallocSpy *self, void *memory, SIZE_T size, void **next, BOOL spied) {
  (void)self;
  (void)spied;
  *next = memory;
  return size;
}
static void *WINAPI spy_same(IMallocSpy *self, void *memory, BOOL spied) { (void)self; (void)spied; return memory; }
static SIZE_T WINAPI spy_after_size(IMallocSpy *self, SIZE_T size, BOOL spied) { (void)self; (void)spied; return size; }
static int WINAPI spy_did(IMallocSpy *self, void *memory, BOOL spied, int actual) { (void)self; (void)memory; (void)spied; return actual; }
static void WINAPI spy_nothing(IMallocSpy *self) { (void)self; }
static IMallocSpyVtbl spy_table = {spy_query, spy_ref, spy_ref, spy_size, spy_after, spy_before_free, spy_after_free, spy_realloc, spy_same,
                                   spy_same, spy_after_size, spy_same, spy_did, spy_nothing, spy_nothing};

static IMallocSpy spy = {&spy_table};

PWSTR StubText(const wchar_t *text) {
  SIZE_T bytes = (wcslen(text) + 1) * sizeof *text;
  PWSTR copy = CoTaskMemAlloc(bytes);
  memcpy(copy, text, bytes);
  EnterCriticalSection(&lock);
  if (texts_count < TEXTS_MAX) texts[texts_count++] = copy;
  LeaveCriticalSection(&lock);
  return copy;
}

int StubOpenHandles(void) { return handles_count; }
int StubTexts(void) { return texts_count; }
int StubBadHandles(void) { return bad_handles; }

void StubFail(PCWSTR function, HRESULT result) {
  wcsncpy(fail_function, function, 63);
  fail_result = result;
}

void StubDelay(PCWSTR function, DWORD ms) {
  wcsncpy(slow_function, function, 63);
  slow_ms = ms;
}

// ---- Files

static FILE *open_file(const wchar_t *name, const wchar_t *mode) {
  wchar_t path[MAX_PATH + 16];
  if (folder[0] == 0) return NULL;
  swprintf(path, MAX_PATH + 16, L"%ls\\%ls", folder, name);
  return _wfopen(path, mode);
}

static void guid_text(REFGUID id, wchar_t *text) {
  swprintf(text, GUID_CHARS, L"%08lx-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x", id->Data1, id->Data2, id->Data3, id->Data4[0], id->Data4[1],
           id->Data4[2], id->Data4[3], id->Data4[4], id->Data4[5], id->Data4[6], id->Data4[7]);
}

// Text of 36 characters.
static BOOL guid_of(const wchar_t *text, GUID *id) {
  wchar_t braced[GUID_CHARS + 2] = L"{";
  wcsncat(braced, text, GUID_CHARS - 1);
  wcscat(braced, L"}");
  return CLSIDFromString(braced, id) == S_OK;
}

static void write_utf8(FILE *file, const wchar_t *text) {
  int bytes = WideCharToMultiByte(CP_UTF8, 0, text, -1, NULL, 0, NULL, NULL);
  char *utf8 = malloc(bytes);
  WideCharToMultiByte(CP_UTF8, 0, text, -1, utf8, bytes, NULL, NULL);
  fputs(utf8, file);
  free(utf8);
}

void StubNote(const char *function, const wchar_t *detail) {
  EnterCriticalSection(&lock);
  FILE *file = open_file(L"journal.txt", L"ab");
  if (file != NULL) {
    fprintf(file, "%s ", function);
    write_utf8(file, detail);
    fputs("\n", file);
    fclose(file);
  }
  LeaveCriticalSection(&lock);
}

static void save(void) {
  wchar_t id[GUID_CHARS];
  FILE *file = open_file(L"objects.txt", L"wb");
  if (file == NULL) return;
  for (struct object *one = objects; one != NULL; one = one->next) {
    guid_text(&one->id, id);
    fprintf(file, "%c %ls ", one->kind, id);
    write_utf8(file, one->json);
    fputs("\n", file);
  }
  fclose(file);
}

static struct object *add(char kind, const GUID *id, const wchar_t *json) {
  struct object *one = calloc(1, sizeof *one), **last = &objects;
  one->kind = kind;
  one->id = *id;
  one->json = wcsdup(json);
  while (*last != NULL) last = &(*last)->next;
  return *last = one;
}

// A line is `N|E|L`, a blank, an id, a blank, JSON.
static void load(void) {
  static char line[1 << 16];
  static wchar_t wide[1 << 16];
  FILE *file = open_file(L"objects.txt", L"rb");
  GUID id;
  if (file == NULL) return;
  while (fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\r\n")] = 0;
    MultiByteToWideChar(CP_UTF8, 0, line, -1, wide, 1 << 16);
    if (wcslen(wide) > 40 && guid_of(wide + 2, &id)) add((char)wide[0], &id, wide + 39), made++;
  }
  fclose(file);
}

// For who sees the process from outside: what it had not closed or freed at its end.
static void tell_what_is_left(void) {
  FILE *file = open_file(L"left.txt", L"wb");
  if (file == NULL) return;
  fprintf(file, "handles %d texts %d bad handles %d\n", handles_count, texts_count, bad_handles);
  fclose(file);
}

BOOL WINAPI DllMain(HINSTANCE library, DWORD reason, LPVOID reserved);
BOOL WINAPI DllMain(HINSTANCE library, DWORD reason, LPVOID reserved) {
  (void)library;
  (void)reserved;
  if (reason == DLL_PROCESS_DETACH) tell_what_is_left();
  if (reason != DLL_PROCESS_ATTACH) return TRUE;
  InitializeCriticalSection(&lock);
  GetEnvironmentVariableW(L"TURNOUT_HNS_STUB", folder, MAX_PATH);
  CoRegisterMallocSpy(&spy);
  load();
  return TRUE;
}

static BOOL is_object(PCWSTR json) { return json != NULL && json[0] == '{' && json[wcslen(json) - 1] == '}'; }

// ---- What all kinds have in common

static HRESULT failed(HRESULT result, const wchar_t *why, PWSTR *record) {
  wchar_t text[512];
  swprintf(text, 512, L"{\"Success\":false,\"Error\":\"%ls \",\"ErrorCode\":%lu}", why, (unsigned long)(DWORD)result);
  if (record != NULL) *record = StubText(text);
  return result;
}

// Each call begins so: it is noted, its outputs are nothing yet, and it may be told to be slow or to fail.
static HRESULT begin(const char *function, const wchar_t *detail, PWSTR *record) {
  wchar_t name[64];
  StubNote(function, detail);
  if (record != NULL) *record = NULL;
  MultiByteToWideChar(CP_UTF8, 0, function, -1, name, 64);
  if (wcscmp(name, slow_function) == 0) {
    slow_function[0] = 0;
    Sleep(slow_ms);
  }
  if (wcscmp(name, fail_function) != 0) return S_OK;
  fail_function[0] = 0;
  return failed(fail_result, L"It was told to fail 日本😀", record);
}

static struct object *find(char kind, REFGUID id) {
  struct object *one = objects;
  while (one != NULL && (one->kind != kind || !IsEqualGUID(&one->id, id))) one = one->next;
  return one;
}

static HRESULT missing(char kind, PWSTR *record) {
  if (kind == NETWORK) return failed(HCN_NETWORK_NOT_FOUND, L"The network was not found.", record);
  if (kind == ENDPOINT) return failed(HCN_ENDPOINT_NOT_FOUND, L"The endpoint was not found.", record);
  return failed(NOT_FOUND, L"Element not found.", record);
}

static struct object *behind(char kind, void *handle) {
  for (struct handle *one = handles; one != NULL; one = one->next)
    if (one == handle && one->kind == kind) return find(kind, &one->id);
  bad_handles++;
  return NULL;
}

static void *hold(char kind, REFGUID id) {
  struct handle *one = calloc(1, sizeof *one);
  one->kind = kind;
  one->id = *id;
  one->next = handles;
  handles = one;
  handles_count++;
  return one;
}

static HRESULT enumerate(const char *function, char kind, PCWSTR query, PWSTR *ids, PWSTR *record) {
  HRESULT result = begin(function, L"", record);
  wchar_t id[GUID_CHARS];
  size_t length = 3;
  *ids = NULL;
  if (result != S_OK) return result;
  if (!is_object(query)) return failed(HCN_INVALID_JSON, L"Invalid JSON document string.", record);
  for (struct object *one = objects; one != NULL; one = one->next) length += GUID_CHARS + 3;
  wchar_t *list = calloc(length, sizeof *list);
  wcscpy(list, L"[");
  for (struct object *one = objects; one != NULL; one = one->next) {
    if (one->kind != kind) continue;
    guid_text(&one->id, id);
    wcscat(wcscat(wcscat(wcscat(list, list[1] == 0 ? L"" : L","), L"\""), id), L"\"");
  }
  *ids = StubText(wcscat(list, L"]"));
  free(list);
  return S_OK;
}

static HRESULT open_one(const char *function, char kind, REFGUID id, void **handle, PWSTR *record) {
  wchar_t text[GUID_CHARS];
  guid_text(id, text);
  HRESULT result = begin(function, text, record);
  *handle = NULL;
  if (result != S_OK) return result;
  if (find(kind, id) == NULL) return missing(kind, record);
  *handle = hold(kind, id);
  return S_OK;
}

static HRESULT query_one(const char *function, char kind, void *handle, PCWSTR query, PWSTR *properties, PWSTR *record) {
  HRESULT result = begin(function, L"", record);
  wchar_t id[GUID_CHARS];
  *properties = NULL;
  if (result != S_OK) return result;
  struct object *one = behind(kind, handle);
  if (one == NULL) return missing(kind, record);
  if (!is_object(query)) return failed(HCN_INVALID_JSON, L"Invalid JSON document string.", record);
  guid_text(&one->id, id);
  wchar_t *text = calloc(wcslen(one->json) + 64, sizeof *text);
  swprintf(text, wcslen(one->json) + 64, L"{\"ID\":\"%ls\"%ls", id, one->json[1] == '}' ? L"" : L",");
  *properties = StubText(wcscat(text, one->json + 1));
  free(text);
  return S_OK;
}

static HRESULT close_one(const char *function, char kind, void *handle) {
  StubNote(function, L"");
  for (struct handle **at = &handles; *at != NULL; at = &(*at)->next) {
    struct handle *one = *at;
    if (one != handle || one->kind != kind) continue;
    *at = one->next;
    free(one);
    handles_count--;
    return S_OK;
  }
  bad_handles++;
  return E_HANDLE;
}

static HRESULT delete_one(char kind, REFGUID id, PWSTR *record) {
  struct object *gone = find(kind, id);
  if (gone == NULL) return missing(kind, record);
  struct object **at = &objects;
  while (*at != gone) at = &(*at)->next;
  *at = gone->next;
  free(gone->json);
  free(gone);
  save();
  return S_OK;
}

static HRESULT create_one(char kind, REFGUID id, PCWSTR settings, void **handle) {
  // Bytes that differ all, so that another order is another id.
  GUID fresh = {0, 0x5060, 0x4708, {0x90, 0xa0, 0xb0, 0xc0, 0xd0, 0xe0, 0xf0, 0x01}};
  do fresh.Data1 = 0x10203040u + (DWORD)++made;
  while (find(NETWORK, &fresh) != NULL || find(ENDPOINT, &fresh) != NULL || find(BALANCER, &fresh) != NULL);
  struct object *one = add(kind, IsEqualGUID(id, &GUID_NULL) ? &fresh : id, settings);
  save();
  *handle = hold(kind, &one->id);
  return S_OK;
}

// ---- Networks and endpoints

HRESULT WINAPI HcnEnumerateNetworks(PCWSTR query, PWSTR *ids, PWSTR *record) { return enumerate(__func__, NETWORK, query, ids, record); }
HRESULT WINAPI HcnOpenNetwork(REFGUID id, PHCN_NETWORK handle, PWSTR *record) { return open_one(__func__, NETWORK, id, handle, record); }
HRESULT WINAPI HcnQueryNetworkProperties(HCN_NETWORK handle, PCWSTR query, PWSTR *properties, PWSTR *record) {
  return query_one(__func__, NETWORK, handle, query, properties, record);
}
HRESULT WINAPI HcnCloseNetwork(HCN_NETWORK handle) { return close_one(__func__, NETWORK, handle); }

HRESULT WINAPI HcnEnumerateEndpoints(PCWSTR query, PWSTR *ids, PWSTR *record) { return enumerate(__func__, ENDPOINT, query, ids, record); }
HRESULT WINAPI HcnOpenEndpoint(REFGUID id, PHCN_ENDPOINT handle, PWSTR *record) { return open_one(__func__, ENDPOINT, id, handle, record); }
HRESULT WINAPI HcnQueryEndpointProperties(HCN_ENDPOINT handle, PCWSTR query, PWSTR *properties, PWSTR *record) {
  return query_one(__func__, ENDPOINT, handle, query, properties, record);
}
HRESULT WINAPI HcnCloseEndpoint(HCN_ENDPOINT handle) { return close_one(__func__, ENDPOINT, handle); }

HRESULT WINAPI HcnCreateEndpoint(HCN_NETWORK network, REFGUID id, PCWSTR settings, PHCN_ENDPOINT handle, PWSTR *record) {
  HRESULT result = begin(__func__, settings, record);
  *handle = NULL;
  if (result != S_OK) return result;
  if (!is_object(settings)) return failed(HCN_INVALID_JSON, L"Invalid JSON document string.", record);
  if (behind(NETWORK, network) == NULL) return missing(NETWORK, record);
  return create_one(ENDPOINT, id, settings, handle);
}

HRESULT WINAPI HcnDeleteEndpoint(REFGUID id, PWSTR *record) {
  wchar_t text[GUID_CHARS];
  guid_text(id, text);
  HRESULT result = begin(__func__, text, record);
  return result == S_OK ? delete_one(ENDPOINT, id, record) : result;
}

// ---- Load balancers

HRESULT WINAPI HcnEnumerateLoadBalancers(PCWSTR query, PWSTR *ids, PWSTR *record) { return enumerate(__func__, BALANCER, query, ids, record); }
HRESULT WINAPI HcnOpenLoadBalancer(REFGUID id, PHCN_LOADBALANCER handle, PWSTR *record) { return open_one(__func__, BALANCER, id, handle, record); }
HRESULT WINAPI HcnQueryLoadBalancerProperties(HCN_LOADBALANCER handle, PCWSTR query, PWSTR *properties, PWSTR *record) {
  return query_one(__func__, BALANCER, handle, query, properties, record);
}
HRESULT WINAPI HcnCloseLoadBalancer(HCN_LOADBALANCER handle) { return close_one(__func__, BALANCER, handle); }

HRESULT WINAPI HcnCreateLoadBalancer(REFGUID id, PCWSTR settings, PHCN_LOADBALANCER handle, PWSTR *record) {
  HRESULT result = begin(__func__, settings, record);
  *handle = NULL;
  if (result == S_OK && !is_object(settings)) return failed(HCN_INVALID_JSON, L"Invalid JSON document string.", record);
  return result == S_OK ? create_one(BALANCER, id, settings, handle) : result;
}

HRESULT WINAPI HcnModifyLoadBalancer(HCN_LOADBALANCER handle, PCWSTR settings, PWSTR *record) {
  HRESULT result = begin(__func__, settings, record);
  if (result != S_OK) return result;
  struct object *one = behind(BALANCER, handle);
  if (one == NULL) return missing(BALANCER, record);
  if (!is_object(settings)) return failed(HCN_INVALID_JSON, L"Invalid JSON document string.", record);
  free(one->json);
  one->json = wcsdup(settings);
  save();
  return S_OK;
}

HRESULT WINAPI HcnDeleteLoadBalancer(REFGUID id, PWSTR *record) {
  wchar_t text[GUID_CHARS];
  guid_text(id, text);
  HRESULT result = begin(__func__, text, record);
  return result == S_OK ? delete_one(BALANCER, id, record) : result;
}
