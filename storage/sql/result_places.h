// The rows that results point at (series, graphs, environments) by what they
// are of, remembered: they never change and never go, and every result asks
// for four of them.

#ifndef OPTFARM_STORAGE_SQL_RESULT_PLACES_H_
#define OPTFARM_STORAGE_SQL_RESULT_PLACES_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace optfarm::storage {

// THREADS: one thread at a time.
class ResultPlaces {
 public:
  // A transaction begins: what an earlier one found and did not keep is
  // forgotten.
  void Begin() { found_.clear(); }
  // The transaction was committed.
  void Keep() {
    if (ids_.size() + found_.size() > kMost) ids_.clear();
    ids_.merge(found_);
    found_.clear();
  }

  // 0: not known.
  int64_t Find(absl::string_view key) const {
    const auto known = ids_.find(key);
    if (known != ids_.end()) return known->second;
    const auto found = found_.find(key);
    return found == found_.end() ? 0 : found->second;
  }
  void Add(std::string key, int64_t id) { found_.emplace(std::move(key), id); }

 private:
  // Some 20 MB.
  static constexpr size_t kMost = 100'000;

  absl::flat_hash_map<std::string, int64_t> ids_;
  // Of the transaction that is open.
  absl::flat_hash_map<std::string, int64_t> found_;
};

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_SQL_RESULT_PLACES_H_
