// Connections for questions: as many at once as there are connections, each
// with its own, so that a long question delays no other.

#ifndef OPTFARM_STORAGE_SQL_READERS_H_
#define OPTFARM_STORAGE_SQL_READERS_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "storage/sql/database.h"

namespace optfarm::storage {

// THREADS: safe.
class SqlReaders {
 public:
  // REQUIRES: at least one connection.
  explicit SqlReaders(std::vector<std::unique_ptr<SqlDatabase>> connections)
      : free_(std::move(connections)) {}

  // A connection for as long as it lives; waits until one is free.
  class Turn {
   public:
    explicit Turn(SqlReaders& readers)
        : readers_(readers), db_(readers.Take()) {}
    ~Turn() { readers_.GiveBack(std::move(db_)); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    SqlDatabase& db() { return *db_; }

   private:
    SqlReaders& readers_;
    std::unique_ptr<SqlDatabase> db_;
  };

 private:
  std::unique_ptr<SqlDatabase> Take() {
    absl::MutexLock lock(&mutex_);
    const auto some = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !free_.empty();
    };
    mutex_.Await(absl::Condition(&some));
    // The one used last has the most in its cache.
    std::unique_ptr<SqlDatabase> db = std::move(free_.back());
    free_.pop_back();
    return db;
  }
  void GiveBack(std::unique_ptr<SqlDatabase> db) {
    absl::MutexLock lock(&mutex_);
    free_.push_back(std::move(db));
  }

  absl::Mutex mutex_;
  std::vector<std::unique_ptr<SqlDatabase>> free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_SQL_READERS_H_
