#include "engine_host/library.h"

#include <dlfcn.h>

namespace optfarm::engine_host {

Problem Library::Open(const std::string& path) {
  path_ = path;
  handle_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ != nullptr) return "";
  const char* why = ::dlerror();
  return "loading '" + path + "': " + (why != nullptr ? why : "no reason");
}

void* Library::Find(const char* name) {
  void* symbol = ::dlsym(handle_, name);
  if (symbol == nullptr && missing_.empty()) missing_ = name;
  return symbol;
}

Problem Library::Missing() const {
  if (missing_.empty()) return "";
  return "'" + path_ + "' has no function " + missing_ +
         "; give the shared library with the runtime's C API";
}

}  // namespace optfarm::engine_host
