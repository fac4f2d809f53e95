// Runs what belongs together in one transaction, and once more where what ended
// it may have passed: a lost connection, two writers in each other's way.

#ifndef OPTFARM_STORAGE_SQL_RUN_H_
#define OPTFARM_STORAGE_SQL_RUN_H_

#include "base/status_macros.h"
#include "storage/sql/database.h"

namespace optfarm::storage {

// How often a transaction is begun.
inline constexpr int kMostRuns = 4;

// `work()` returns a Status or a StatusOr; what it did is kept when that is OK.
// It may run up to `runs` times; what it did in the database before was undone
// then.
template <typename Work>
auto RunInTransaction(SqlDatabase& db, SqlTransaction::Mode mode, Work work,
                      int runs = kMostRuns) -> decltype(work()) {
  const auto once = [&]() -> decltype(work()) {
    SqlTransaction transaction(db, mode);
    OPTFARM_RETURN_IF_ERROR(transaction.status());
    auto answer = work();
    if (!answer.ok()) return answer;
    OPTFARM_RETURN_IF_ERROR(transaction.Commit());
    return answer;
  };
  auto answer = once();
  while (--runs > 0 && !answer.ok() && db.MayRunAgain()) answer = once();
  return answer;
}

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_SQL_RUN_H_
