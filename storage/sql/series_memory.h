// The numbers of all results in memory, by series and in order of time, so that
// questions about many series read no page for each row. It is a copy of what
// the database says and knows nothing else: before a question it is brought to
// the state that the question's transaction sees. Results come with ids that
// grow, and when some have gone the database's count of them differs.

#ifndef OPTFARM_STORAGE_SQL_SERIES_MEMORY_H_
#define OPTFARM_STORAGE_SQL_SERIES_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "storage/records.h"
#include "storage/sql/database.h"
#include "storage/sql/result_rows.h"
#include "storage/sql/tag_sets.h"

namespace optfarm::storage::sql {

// THREADS: those of its database.
class SeriesMemory {
 public:
  // One cache line.
  struct Point {
    int64_t result_id;
    double median_us;
    double p90_us;
    int64_t peak_memory_bytes;
    int64_t file_size_bytes;
    int64_t model_id;
    int64_t measured_id;
    TagSets::Id tags : 31;
    TagSets::Id noisy : 1;

    PointNumbers Numbers() const {
      return {result_id,         median_us,       p90_us,
              peak_memory_bytes, file_size_bytes, noisy != 0};
    }
  };

  struct Series {
    int64_t series_id = 0;
    SeriesKey key;
    int64_t last_result_id = 0;
    // At least those of its results.
    NumberRanges bounds;
    // How many the database has.
    int64_t results = 0;
    // The newest of them, oldest first.
    std::vector<Point> points;

    // Some are only in the database; they are older than those here.
    bool has_older() const {
      return results > static_cast<int64_t>(points.size());
    }
  };

  // Takes at most `max_bytes`: of long series only the newest points are kept,
  // and nothing at all when few would be.
  explicit SeriesMemory(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // Makes it a copy of what `db` says. REQUIRES: a transaction on `db`.
  // ERRORS: those of `db`; then it is empty, and the next call begins anew.
  absl::Status CatchUp(SqlDatabase& db);

  // False where the results are too many for max_bytes; then it has none.
  bool usable() const { return loaded_ && !too_small_; }

  // Without an order. Valid, as what is found below, until the next CatchUp.
  const std::vector<std::unique_ptr<Series>>& series() const { return series_; }
  // Null where there is none.
  const Series* Find(int64_t series_id) const;

  // Indexed by Point::tags; empty when no result has the tag.
  std::vector<char> SetsWith(absl::string_view tag) const {
    return tags_.Having(tag);
  }

  int64_t points() const { return points_; }
  // UNITS: bytes, roughly.
  int64_t bytes() const;

 private:
  void Clear();
  absl::Status Load(SqlDatabase& db);
  absl::Status LoadPoints(SqlDatabase& db, size_t depth, Series& series);
  absl::Status LoadTags(SqlDatabase& db);
  void AddTag(absl::string_view tag, Point& point);
  absl::Status Follow(SqlDatabase& db);
  absl::Status AddNewPoints(SqlDatabase& db);
  absl::Status AddNewTags(SqlDatabase& db, int64_t after);
  absl::Status DropThoseGone(SqlDatabase& db);
  absl::Status DropThoseGone(SqlDatabase& db, int64_t results, Series& series);
  Series& Add(const SqlStatement& row);
  // How many points of a series may stay so that all together take no more;
  // 0: so few that it is not worth it.
  size_t DepthWithin(int64_t bytes) const;
  void KeepWithinBound();

  const int64_t max_bytes_;
  bool loaded_ = false;
  bool too_small_ = false;
  std::vector<std::unique_ptr<Series>> series_;
  absl::flat_hash_map<int64_t, Series*> by_id_;
  TagSets tags_;
  int64_t points_ = 0;
  // Every result with a larger id is new.
  int64_t last_result_id_ = 0;
  // The database's count of results that have gone.
  int64_t gone_ = 0;
};

}  // namespace optfarm::storage::sql

#endif  // OPTFARM_STORAGE_SQL_SERIES_MEMORY_H_
