// What a handle leads to: variables, tables, arrays of tensors, stacks. A
// handle is a scalar tensor that owns its resource together with others
// (Tensor::FromResource), so what nothing refers to is gone.

#ifndef OPTFARM_ENGINE_RUNTIME_CORE_RESOURCE_H_
#define OPTFARM_ENGINE_RUNTIME_CORE_RESOURCE_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace optfarm::runtime {

// THREADS: several runs may use one resource at once; each class guards itself.
class Resource {
 public:
  virtual ~Resource() = default;
  // "variable", "lookup table"; for messages.
  virtual absl::string_view kind() const = 0;
};

// The resources that outlive a run, by name: variables and tables. What one
// run makes for itself (tensor arrays, stacks) is never in here.
//
// Each session has one, which lives as long as the session or the last handle
// that the caller still holds; sessions that are given the same container (one
// that initializes and one that answers) share their variables and tables.
//
// THREADS: all methods may be called from many threads at once.
class ResourceContainer {
 public:
  // The resource of that name, made by `make` at the first time.
  std::shared_ptr<Resource> GetOrMake(
      const std::string& name,
      const std::function<std::shared_ptr<Resource>()>& make);
  // nullptr when there is none.
  std::shared_ptr<Resource> Find(absl::string_view name) const;
  // False when there is none. Handles to it stay valid.
  bool Remove(absl::string_view name);

 private:
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::shared_ptr<Resource>> by_name_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_CORE_RESOURCE_H_
