// Finds measurements without reading those that nobody asked for. There are few
// series and many measurements: a filter first chooses series, then each
// series' newest rows are taken from memory, or read from an index where memory
// has no room for them, and no series further back than what has been found.
// Without memory a tag that few results have is where rows come from; one that
// many have is looked up for rows that numbers or graphs have chosen; and what
// many results have is found by walking back over all, before series are asked.

#ifndef OPTFARM_STORAGE_SQL_RESULT_QUERY_H_
#define OPTFARM_STORAGE_SQL_RESULT_QUERY_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "storage/metadata_store.h"
#include "storage/sql/database.h"
#include "storage/sql/series_memory.h"

namespace optfarm::storage::sql {

// The smallest id of a result that was taken at `time` or later; one above the
// largest when there is none.
absl::StatusOr<int64_t> FirstResultAt(SqlDatabase& db, absl::Time time);

// THREADS: those of its database. OWNERSHIP: database, filter and memory
// outlive it.
class ResultQuery {
 public:
  // A series that may hold what is asked for.
  struct Candidate {
    int64_t series_id = 0;
    // OWNERSHIP: the query's or its memory's.
    const SeriesKey* key = nullptr;
    // Null where there is no memory.
    const SeriesMemory::Series* series = nullptr;
    // No row outside oldest..newest is asked for.
    int64_t newest = 0;
    int64_t oldest = 0;
    // A row must be of one of the filter's graphs.
    bool check_graph = false;
  };

  // `memory`, which may be null, says what `db` says.
  ResultQuery(SqlDatabase& db, const SeriesMemory* memory,
              const MeasurementFilter& filter)
      : db_(db), memory_(memory), filter_(filter) {}

  // Reads the filter's times and graphs; call it first. `before`: only results
  // with smaller ids; 0: all.
  absl::Status Prepare(int64_t before);

  // The newest `limit` results, newest first.
  absl::StatusOr<std::vector<int64_t>> NewestIds(size_t limit);

  // By newest, the newest first.
  absl::StatusOr<std::vector<Candidate>> Candidates();

  // Sets `rows` to the newest of a candidate, newest first.
  struct RowsWanted {
    int limit = 0;
    // With ids from here on.
    int64_t least = 0;
    // As in SeriesRequest.
    const std::function<bool(absl::Span<const PointNumbers>)>* enough = nullptr;
  };
  absl::Status Rows(const Candidate& candidate, const RowsWanted& wanted,
                    std::vector<PointNumbers>& rows);

 private:
  bool NeedsSeries() const;
  absl::Status CountTag();
  // Rows come from the tag's index.
  bool LedByTag() const;
  // The one metric that is asked about, as a place in ranges_.
  std::optional<size_t> OneMetric() const;
  absl::StatusOr<bool> HasTag(int64_t series_id, int64_t result_id);
  absl::StatusOr<std::vector<int64_t>> NewestOfAll(size_t limit);
  // The newest results of the candidates, at most `limit`, from a walk over all
  // results that ends early where those asked for are few.
  // ENSURES: what has been looked at is above high_, which falls to there.
  absl::StatusOr<std::vector<int64_t>> WalkBack(
      absl::Span<const Candidate> candidates, size_t limit);
  bool MatchesNumbers(const PointNumbers& point) const;
  // A result of a series within these bounds may match.
  bool MayMatchNumbers(const NumberRanges& bounds) const;
  // Adds rows; true when no more are wanted.
  bool Add(const PointNumbers& row, const RowsWanted& wanted,
           std::vector<PointNumbers>& rows) const;
  bool AddRowsOfMemory(const Candidate& candidate, const RowsWanted& wanted,
                       std::vector<PointNumbers>& rows) const;
  absl::Status AddRowsOfIndex(const Candidate& candidate,
                              const RowsWanted& wanted,
                              std::vector<PointNumbers>& rows);

  void AddCandidatesOfMemory(std::vector<Candidate>& candidates) const;
  bool IsAskedFor(const SeriesMemory::Series& series) const;
  absl::Status AddCandidatesOfTable(std::vector<Candidate>& candidates);
  absl::Status AddCandidatesOfGraph(int64_t graph_id, const char* next_series,
                                    const char* bounds,
                                    std::vector<Candidate>& candidates);
  absl::Status AddCandidatesOfTag(std::vector<Candidate>& candidates);
  absl::Status AddCandidatesOfJob(std::vector<Candidate>& candidates);
  // Adds the series unless the filter excludes it.
  absl::Status AddSeries(int64_t series_id, int64_t newest, int64_t oldest,
                         std::vector<Candidate>& candidates);
  bool MatchesName(const SeriesKey& key) const;

  // Adds it unless no row within its bounds is asked for.
  void AddCandidate(Candidate candidate, int64_t last_result_id,
                    std::vector<Candidate>& candidates) const;
  // The same of a row of `series`.
  void AddCandidateOfRow(const SqlStatement& row, int64_t newest,
                         int64_t oldest, std::vector<Candidate>& candidates);

  SqlDatabase& db_;
  const SeriesMemory* const memory_;
  const MeasurementFilter& filter_;
  // What the filter asks for.
  NumberRanges ranges_;
  // Ids in low_..high_-1 are asked for.
  int64_t low_ = 0;
  int64_t high_ = std::numeric_limits<int64_t>::max();
  absl::flat_hash_set<int64_t> graphs_;
  bool tag_is_rare_ = false;
  // Of the sets of tags in memory, those with the filter's.
  std::vector<char> sets_with_tag_;
  // Those of candidates that were not in memory.
  std::deque<SeriesKey> keys_;
  // Series are found through the tag, which says too which have had it last.
  bool series_by_tag_ = true;
};

}  // namespace optfarm::storage::sql

#endif  // OPTFARM_STORAGE_SQL_RESULT_QUERY_H_
