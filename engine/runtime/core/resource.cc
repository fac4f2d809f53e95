#include "engine/runtime/core/resource.h"

#include <utility>

namespace optfarm::runtime {

std::shared_ptr<Resource> ResourceContainer::GetOrMake(
    const std::string& name,
    const std::function<std::shared_ptr<Resource>()>& make) {
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<Resource>& resource = by_name_[name];
  if (resource == nullptr) resource = make();
  return resource;
}

std::shared_ptr<Resource> ResourceContainer::Find(
    absl::string_view name) const {
  absl::MutexLock lock(&mutex_);
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

bool ResourceContainer::Remove(absl::string_view name) {
  absl::MutexLock lock(&mutex_);
  const auto it = by_name_.find(name);
  if (it == by_name_.end()) return false;
  by_name_.erase(it);
  return true;
}

}  // namespace optfarm::runtime
