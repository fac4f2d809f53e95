#include "storage/sql/job_query.h"

#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optfarm::storage::sql {
namespace {

// Of the filters, by their bits in the number of a text.
constexpr std::array<const char*, 7> kConditions = {
    "state = ?3",
    "project = ?4",
    "recipe_name = ?5",
    "name = ?6",
    "job_id IN (SELECT job_id FROM tasks WHERE device = ?7)",
    "((model_sha256 >= ?8 AND model_sha256 < ?9) OR model_name = ?10)",
    // 'g' and '~' sort after whatever a job's id has.
    "job_id >= ?11 AND job_id < ?11 || '~'",
};

// One model's jobs, and those whose ids begin alike, are few, which SQLite does
// not know: it would read all jobs for the sake of their order. '+' keeps it
// from using a condition to find rows.
constexpr size_t kFew = 1 << 5 | 1 << 6;

std::vector<std::string> MakeQueries() {
  std::vector<std::string> queries;
  for (size_t set = 0; set < size_t{1} << kConditions.size(); ++set) {
    const char* const only_checked = (set & kFew) != 0 ? "+" : "";
    std::string sql = absl::StrCat("SELECT job_number FROM jobs WHERE ",
                                   only_checked, "job_number < ?1");
    for (size_t i = 0; i < kConditions.size(); ++i) {
      const size_t bit = size_t{1} << i;
      if ((set & bit) == 0) continue;
      absl::StrAppend(&sql, " AND ", (bit & kFew) != 0 ? "" : only_checked,
                      kConditions[i]);
    }
    queries.push_back(absl::StrCat(sql, " ORDER BY job_number DESC LIMIT ?2"));
  }
  return queries;
}

// Parameters that a text does not have are left alone.
class Question {
 public:
  void Text(int parameter, const std::optional<std::string>& value, int bit) {
    if (!value.has_value()) return;
    set_ |= size_t{1} << bit;
    texts_.emplace_back(parameter, *value);
  }
  void State(const std::optional<v1::JobState>& state) {
    state_ = state;
    if (state.has_value()) set_ |= 1;
  }
  // Lowest and first too high SHA-256, and file name. Nothing is called "".
  void Model(const ModelFilter& model) {
    const std::string& prefix = model.sha256_prefix;
    Text(8, prefix.empty() ? "~" : prefix, 5);
    Text(9, prefix.empty() ? "~" : absl::StrCat(prefix, "g"), 5);
    Text(10, model.file_name.empty() ? "\x01" : model.file_name, 5);
  }

  const char* sql() const { return AllJobQueries()[set_].c_str(); }
  void BindTo(SqlStatement& query) const {
    if (state_.has_value()) query.BindInt(3, *state_);
    for (const auto& [parameter, value] : texts_) {
      query.BindText(parameter, value);
    }
  }

 private:
  size_t set_ = 0;
  std::optional<v1::JobState> state_;
  std::vector<std::pair<int, std::string>> texts_;
};

}  // namespace

absl::Span<const std::string> AllJobQueries() {
  // Their addresses are what statements are found by.
  static const auto& queries = *new std::vector<std::string>(MakeQueries());
  return queries;
}

absl::StatusOr<std::vector<int64_t>> FindJobs(SqlDatabase& db,
                                              const JobFilter& filter,
                                              const PageRequest& page) {
  Question question;
  question.State(filter.state);
  question.Text(4, filter.project, 1);
  question.Text(5, filter.recipe_name, 2);
  question.Text(6, filter.name, 3);
  question.Text(7, filter.device, 4);
  if (filter.model.has_value()) question.Model(*filter.model);
  question.Text(11, filter.job_id_prefix, 6);
  SqlStatement query = db.Prepare(question.sql());
  question.BindTo(query);
  query.BindInt(
      1, page.before == 0 ? std::numeric_limits<int64_t>::max() : page.before);
  query.BindInt(2, page.limit);
  std::vector<int64_t> numbers;
  while (query.Step()) numbers.push_back(query.Int(0));
  OPTFARM_RETURN_IF_ERROR(query.status());
  return numbers;
}

}  // namespace optfarm::storage::sql
