// The table behind op_table.h, and FindOpDef, AllOpNames and IsStateful of
// op_defs.h: a map from names to rows, and signatures that are parsed entry by
// entry, when somebody asks for them.

#include "engine/graph/ops/op_table.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/call_once.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_families.h"
#include "engine/graph/ops/op_signatures.h"

namespace optfarm::graph {
namespace {

using tensorflow::OpDef;

// A row and its signatures, one for each name. Most are never read.
class OpEntry {
 public:
  void set_row(const OpRow* row) { row_ = row; }
  const OpRow& row() const { return *row_; }

  // REQUIRES: `name` is one of the row's names.
  const OpDef& Signature(absl::string_view name) {
    absl::call_once(once_, [this] {
      absl::StatusOr<std::vector<OpDef>> ops =
          ParseOpSignature(row_->names, row_->signature);
      // The text is ours; op_table_test reads it all.
      OPTFARM_CHECK(ops.ok());
      ops_ = *std::move(ops);
    });
    const auto it =
        std::find_if(ops_.begin(), ops_.end(),
                     [name](const OpDef& op) { return name == op.name(); });
    OPTFARM_CHECK(it != ops_.end());
    return *it;
  }

 private:
  const OpRow* row_ = nullptr;
  absl::once_flag once_;
  std::vector<OpDef> ops_;
};

using OpTable = absl::flat_hash_map<absl::string_view, OpEntry*>;

OpTable* MakeTable() {
  const std::vector<absl::Span<const OpRow>> families = {
      ArrayOps(),
      ControlFlowOps(),
      ImageOps(),
      LayerOps(),
      LinearAlgebraOps(),
      MathOps(),
      NnOps(),
      OtherFormatOps(),
      QuantizedOps(),
      RandomOps(),
      StateOps(),
      StringOps(),
      LinearQuantizationOps()};
  size_t rows = 0;
  for (const auto& family : families) rows += family.size();
  // Lives until the program ends, as all that is handed out does.
  OpEntry* entry = new OpEntry[rows];
  auto* table = new OpTable;
  table->reserve(2 * rows);
  for (const auto& family : families) {
    for (const OpRow& row : family) {
      entry->set_row(&row);
      for (absl::string_view name : NamesOf(row)) {
        const bool is_new = table->emplace(name, entry).second;
        OPTFARM_CHECK(is_new);
      }
      ++entry;
    }
  }
  return table;
}

const OpTable& Table() {
  static const OpTable* const table = MakeTable();
  return *table;
}

}  // namespace

std::vector<absl::string_view> NamesOf(const OpRow& row) {
  std::vector<absl::string_view> names =
      absl::StrSplit(absl::string_view(row.names), ',');
  for (absl::string_view& name : names) {
    name = absl::StripAsciiWhitespace(name);
  }
  return names;
}

const OpRow* FindOpRow(absl::string_view op) {
  const auto it = Table().find(op);
  return it == Table().end() ? nullptr : &it->second->row();
}

const OpRow& RowOf(absl::string_view op) {
  static constexpr OpRow kUnknown = {};
  const OpRow* row = FindOpRow(op);
  return row == nullptr ? kUnknown : *row;
}

const OpDef* FindOpDef(absl::string_view op) {
  const auto it = Table().find(op);
  return it == Table().end() ? nullptr : &it->second->Signature(it->first);
}

std::vector<absl::string_view> AllOpNames() {
  std::vector<absl::string_view> names;
  names.reserve(Table().size());
  for (const auto& [name, entry] : Table()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

bool IsStateful(absl::string_view op) {
  const OpDef* op_def = FindOpDef(op);
  return op_def == nullptr || op_def->is_stateful();
}

}  // namespace optfarm::graph
