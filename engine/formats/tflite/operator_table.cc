#include "engine/formats/tflite/operator_table.h"

#include "absl/container/flat_hash_map.h"

namespace optfarm::tflite {
namespace {

using Table = absl::flat_hash_map<int32_t, const OperatorRow*>;

Table* MakeTable() {
  auto* table = new Table;
  for (const auto& family :
       {ActivationRows(), ArithmeticRows(), ArrayRows(), ControlRows(),
        IndexRows(), ProductRows(), QuantizationRows(), RecurrentRows(),
        ReductionRows(), WindowRows()}) {
    for (const OperatorRow& row : family) {
      table->emplace(static_cast<int32_t>(row.code), &row);
    }
  }
  return table;
}

}  // namespace

const OperatorRow* FindOperator(BuiltinOperator code) {
  static const Table* const table = MakeTable();
  const auto it = table->find(static_cast<int32_t>(code));
  return it == table->end() ? nullptr : it->second;
}

const CustomOperatorRow* FindCustomOperator(absl::string_view name) {
  for (const CustomOperatorRow& row : CustomRows()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace optfarm::tflite
