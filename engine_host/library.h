// A shared library, loaded for as long as the process lives: runtimes leave
// threads and handlers behind that would outlive an unloaded one.

#ifndef OPTFARM_ENGINE_HOST_LIBRARY_H_
#define OPTFARM_ENGINE_HOST_LIBRARY_H_

#include <string>

#include "engine_host/engine.h"

namespace optfarm::engine_host {

class Library {
 public:
  Problem Open(const std::string& path);

  // nullptr where there is none; the first that was missed is kept.
  void* Find(const char* name);

  template <typename Function>
  void Find(const char* name, Function** function) {
    *function = reinterpret_cast<Function*>(Find(name));
  }

  // Empty when all that was looked for is there.
  Problem Missing() const;

 private:
  std::string path_, missing_;
  void* handle_ = nullptr;
};

}  // namespace optfarm::engine_host

#endif  // OPTFARM_ENGINE_HOST_LIBRARY_H_
