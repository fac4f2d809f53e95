// Which series may hold what a ResultQuery asks for.

#include <algorithm>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "storage/sql/result_query.h"
#include "storage/sql/result_rows.h"
#include "storage/sql/select_columns.h"

namespace optfarm::storage::sql {
namespace {

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

#define OPTFARM_SERIES_CONDITIONS                                        \
  " AND (device = ?1 OR ?1 IS NULL) AND (model_name = ?2 OR ?2 IS NULL)" \
  " AND (recipe_name = ?3 OR ?3 IS NULL)"                                \
  " AND (variant = ?4 OR ?4 IS NULL) AND (threads = ?5 OR ?5 IS NULL)"   \
  " AND (project = ?7 OR ?7 IS NULL)"
constexpr char kSeriesOfDevice[] =
    OPTFARM_SELECT_SERIES " WHERE device = ?1" OPTFARM_SERIES_CONDITIONS;
constexpr char kSeriesOfModel[] =
    OPTFARM_SELECT_SERIES " WHERE model_name = ?2" OPTFARM_SERIES_CONDITIONS;
constexpr char kAllSeries[] =
    OPTFARM_SELECT_SERIES " WHERE TRUE" OPTFARM_SERIES_CONDITIONS;
constexpr char kOneSeries[] =
    OPTFARM_SELECT_SERIES " WHERE series_id = ?6" OPTFARM_SERIES_CONDITIONS;
#undef OPTFARM_SERIES_CONDITIONS

// An index that begins with a graph or tag and the series is walked from series
// to series, one step each.
constexpr char kNextSeriesOfModel[] =
    "SELECT series_id FROM measurements INDEXED BY measurements_by_model"
    " WHERE model_id = ?1 AND series_id > ?2 ORDER BY series_id LIMIT 1";
constexpr char kNextSeriesOfMeasured[] =
    "SELECT series_id FROM measurements INDEXED BY measurements_by_measured"
    " WHERE measured_id = ?1 AND series_id > ?2 ORDER BY series_id LIMIT 1";
// Backwards, so that the same step finds the series' newest result.
constexpr char kNextSeriesOfTag[] =
    "SELECT series_id, result_id FROM result_tags"
    " WHERE tag = ?1 AND series_id < ?2"
    " ORDER BY series_id DESC, result_id DESC LIMIT 1";
constexpr SelectColumns kSeriesOfTag(kNextSeriesOfTag);
constexpr char kBoundsOfModel[] =
    "SELECT (SELECT MIN(result_id) FROM measurements INDEXED BY"
    " measurements_by_model WHERE model_id = ?1 AND series_id = ?2) AS oldest,"
    " (SELECT MAX(result_id) FROM measurements INDEXED BY"
    " measurements_by_model WHERE model_id = ?1 AND series_id = ?2) AS newest";
constexpr char kBoundsOfMeasured[] =
    "SELECT (SELECT MIN(result_id) FROM measurements INDEXED BY"
    " measurements_by_measured"
    " WHERE measured_id = ?1 AND series_id = ?2) AS oldest,"
    " (SELECT MAX(result_id) FROM measurements INDEXED BY"
    " measurements_by_measured"
    " WHERE measured_id = ?1 AND series_id = ?2) AS newest";
constexpr SelectColumns kBounds(kBoundsOfModel);
static_assert(SelectColumns(kBoundsOfMeasured).BeginsWith(kBounds));

void BindOptional(SqlStatement& statement, int parameter,
                  const std::optional<std::string>& value) {
  if (value.has_value()) statement.BindText(parameter, *value);
}

}  // namespace

bool ResultQuery::MayMatchNumbers(const NumberRanges& bounds) const {
  for (size_t i = 0; i < ranges_.size(); ++i) {
    if (bounds[i].most < ranges_[i].least ||
        bounds[i].least > ranges_[i].most) {
      return false;
    }
  }
  return true;
}

bool ResultQuery::IsAskedFor(const SeriesMemory::Series& series) const {
  const SeriesKey& key = series.key;
  return (!filter_.device || key.device == *filter_.device) &&
         (!filter_.recipe_name || key.recipe_name == *filter_.recipe_name) &&
         (!filter_.variant || key.variant == *filter_.variant) &&
         (!filter_.threads || key.threads == *filter_.threads) &&
         (!filter_.project || key.project == *filter_.project) &&
         MayMatchNumbers(series.bounds);
}

void ResultQuery::AddCandidate(Candidate candidate, int64_t last_result_id,
                               std::vector<Candidate>& candidates) const {
  candidate.newest = std::min({candidate.newest, last_result_id, high_ - 1});
  candidate.oldest = std::max(candidate.oldest, low_);
  candidate.check_graph = filter_.model && !MatchesName(*candidate.key);
  if (candidate.check_graph && graphs_.empty()) return;
  if (candidate.newest < candidate.oldest) return;
  candidates.push_back(candidate);
}

void ResultQuery::AddCandidateOfRow(const SqlStatement& row, int64_t newest,
                                    int64_t oldest,
                                    std::vector<Candidate>& candidates) {
  if (!MayMatchNumbers(ReadSeriesBounds(row))) return;
  keys_.push_back(ReadSeriesKey(row));
  const SeriesNumbers numbers = ReadSeriesNumbers(row);
  AddCandidate({numbers.series_id, &keys_.back(), nullptr, newest, oldest},
               numbers.last_result_id, candidates);
}

bool ResultQuery::MatchesName(const SeriesKey& key) const {
  return !key.model_name.empty() && key.model_name == filter_.model->file_name;
}

absl::StatusOr<std::vector<ResultQuery::Candidate>> ResultQuery::Candidates() {
  std::vector<Candidate> candidates;
  if (filter_.job_id) {
    OPTFARM_RETURN_IF_ERROR(AddCandidatesOfJob(candidates));
  } else if (filter_.tag &&
             (memory_ == nullptr ? series_by_tag_ : tag_is_rare_) &&
             (LedByTag() || graphs_.empty())) {
    OPTFARM_RETURN_IF_ERROR(AddCandidatesOfTag(candidates));
  } else {
    if (memory_ != nullptr) {
      AddCandidatesOfMemory(candidates);
    } else {
      OPTFARM_RETURN_IF_ERROR(AddCandidatesOfTable(candidates));
    }
    for (const int64_t graph_id : graphs_) {
      OPTFARM_RETURN_IF_ERROR(AddCandidatesOfGraph(graph_id, kNextSeriesOfModel,
                                                   kBoundsOfModel, candidates));
      OPTFARM_RETURN_IF_ERROR(AddCandidatesOfGraph(
          graph_id, kNextSeriesOfMeasured, kBoundsOfMeasured, candidates));
    }
  }
  // One series may have been found in several ways: take what covers all.
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) {
              return a.series_id < b.series_id;
            });
  std::vector<Candidate> merged;
  for (const Candidate& next : candidates) {
    if (merged.empty() || merged.back().series_id != next.series_id) {
      merged.push_back(next);
      continue;
    }
    Candidate& known = merged.back();
    known.newest = std::max(known.newest, next.newest);
    known.oldest = std::min(known.oldest, next.oldest);
    known.check_graph &= next.check_graph;
  }
  std::sort(merged.begin(), merged.end(),
            [](const Candidate& a, const Candidate& b) {
              return std::pair(b.newest, a.series_id) <
                     std::pair(a.newest, b.series_id);
            });
  return merged;
}

void ResultQuery::AddCandidatesOfMemory(
    std::vector<Candidate>& candidates) const {
  for (const auto& series : memory_->series()) {
    if (filter_.model && !MatchesName(series->key)) continue;
    if (!IsAskedFor(*series)) continue;
    AddCandidate({series->series_id, &series->key, series.get(), kEnd, 0},
                 series->last_result_id, candidates);
  }
}

absl::Status ResultQuery::AddCandidatesOfTable(
    std::vector<Candidate>& candidates) {
  const bool by_name = filter_.model.has_value();
  if (by_name && filter_.model->file_name.empty()) return absl::OkStatus();
  SqlStatement query = db_.Prepare(filter_.device ? kSeriesOfDevice
                                   : by_name      ? kSeriesOfModel
                                                  : kAllSeries);
  BindOptional(query, 1, filter_.device);
  if (by_name) query.BindText(2, filter_.model->file_name);
  BindOptional(query, 3, filter_.recipe_name);
  BindOptional(query, 4, filter_.variant);
  if (filter_.threads) query.BindInt(5, *filter_.threads);
  BindOptional(query, 7, filter_.project);
  while (query.Step()) AddCandidateOfRow(query, kEnd, 0, candidates);
  return query.status();
}

absl::Status ResultQuery::AddSeries(int64_t series_id, int64_t newest,
                                    int64_t oldest,
                                    std::vector<Candidate>& candidates) {
  if (memory_ != nullptr) {
    const SeriesMemory::Series* series = memory_->Find(series_id);
    if (series != nullptr && IsAskedFor(*series)) {
      AddCandidate({series_id, &series->key, series, newest, oldest},
                   series->last_result_id, candidates);
    }
    return absl::OkStatus();
  }
  SqlStatement query = db_.Prepare(kOneSeries);
  BindOptional(query, 1, filter_.device);
  BindOptional(query, 3, filter_.recipe_name);
  BindOptional(query, 4, filter_.variant);
  if (filter_.threads) query.BindInt(5, *filter_.threads);
  BindOptional(query, 7, filter_.project);
  query.BindInt(6, series_id);
  if (query.Step()) AddCandidateOfRow(query, newest, oldest, candidates);
  return query.status();
}

absl::Status ResultQuery::AddCandidatesOfGraph(
    int64_t graph_id, const char* next_series, const char* bounds,
    std::vector<Candidate>& candidates) {
  int64_t series_id = 0;
  while (true) {
    {
      SqlStatement next = db_.Prepare(next_series);
      next.BindInt(1, graph_id);
      next.BindInt(2, series_id);
      if (!next.Step()) return next.status();
      series_id = next.Int(0);
    }
    SqlStatement range = db_.Prepare(bounds);
    range.BindInt(1, graph_id);
    range.BindInt(2, series_id);
    if (!range.Step()) return range.status();
    OPTFARM_RETURN_IF_ERROR(AddSeries(series_id, range.Int(kBounds["newest"]),
                                      range.Int(kBounds["oldest"]),
                                      candidates));
  }
}

absl::Status ResultQuery::AddCandidatesOfTag(
    std::vector<Candidate>& candidates) {
  int64_t series_id = kEnd;
  while (true) {
    int64_t newest = 0;
    {
      SqlStatement next = db_.Prepare(kNextSeriesOfTag);
      next.BindText(1, *filter_.tag);
      next.BindInt(2, series_id);
      if (!next.Step()) return next.status();
      series_id = next.Int(kSeriesOfTag["series_id"]);
      newest = next.Int(kSeriesOfTag["result_id"]);
    }
    OPTFARM_RETURN_IF_ERROR(AddSeries(series_id, newest, 0, candidates));
  }
}

absl::Status ResultQuery::AddCandidatesOfJob(
    std::vector<Candidate>& candidates) {
  if (filter_.tag) {
    SqlStatement has =
        db_.Prepare("SELECT 1 FROM job_tags WHERE job_id = ?1 AND tag = ?2");
    has.BindText(1, *filter_.job_id);
    has.BindText(2, *filter_.tag);
    if (!has.Step()) return has.status();
  }
  std::vector<int64_t> series;
  {
    SqlStatement query = db_.Prepare(
        "SELECT DISTINCT series_id FROM measurements WHERE job_id = ?1");
    query.BindText(1, *filter_.job_id);
    while (query.Step()) series.push_back(query.Int(0));
    OPTFARM_RETURN_IF_ERROR(query.status());
  }
  for (const int64_t series_id : series) {
    OPTFARM_RETURN_IF_ERROR(AddSeries(series_id, kEnd, 0, candidates));
  }
  return absl::OkStatus();
}

}  // namespace optfarm::storage::sql
