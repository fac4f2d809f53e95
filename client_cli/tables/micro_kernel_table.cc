#include "client_cli/tables/micro_kernel_table.h"

#include <string>

#include "absl/strings/str_join.h"
#ifdef OPTFARM_FAST_KERNELS
#include "engine/runtime/ukernels/cpu_features.h"
#include "engine/runtime/ukernels/micro_kernel_catalog.h"
#endif

namespace optfarm::client_cli {
#ifdef OPTFARM_FAST_KERNELS
namespace {

using runtime::MicroKernel;

// A number of rows, channels or values; nothing where it has no meaning.
Cell SizeCell(int size) { return size > 0 ? Cell::Integer(size) : Cell(); }

Cell ActivationsCell(const MicroKernel& kernel) {
  if (kernel.kind != runtime::MicroKernelKind::kInt8Gemm &&
      kernel.kind != runtime::MicroKernelKind::kInt8MatrixGemm) {
    return Cell();
  }
  switch (kernel.activations) {
    case runtime::ActivationLayout::kIndirect:
      return Cell::Text("indirect");
    case runtime::ActivationLayout::kPacked:
      return Cell::Text("packed");
    case runtime::ActivationLayout::kStrided:
      return Cell::Text("strided");
  }
  return Cell();
}

Cell EpilogueCell(const MicroKernel& kernel) {
  std::vector<std::string> parts;
  if (kernel.Can(runtime::kStoresAccumulators)) parts.push_back("int32");
  if (kernel.Can(runtime::kRequantizes)) parts.push_back("requantize");
  if (kernel.Can(runtime::kPairsRows)) parts.push_back("row pairs");
  if (kernel.Can(runtime::kActivates)) parts.push_back("activation");
  return parts.empty() ? Cell() : Cell::Text(absl::StrJoin(parts, ", "));
}

// What this processor does with the kernel.
std::string UseOf(const MicroKernel& kernel) {
  const runtime::CpuFeatures cpu = runtime::UsedCpuFeatures();
  if (runtime::SelectMicroKernel(kernel.kind, cpu) == &kernel) return "used";
  if (!HasAll(cpu, kernel.needs)) return "no";
  return IsUsable(kernel, cpu) ? "usable" : "not permitted";
}

}  // namespace
#endif

Table MakeMicroKernelTable() {
  constexpr Table::Align kRight = Table::Align::kRight;
  Table table({{"kernel", "KERNEL"},
               {"instruction_sets", "INSTRUCTION SETS"},
               {"mr", "MR", kRight},
               {"nr", "NR", kRight},
               {"kr", "KR", kRight},
               {"activations", "ACTIVATIONS", Table::Align::kLeft, true},
               {"epilogue", "EPILOGUE", Table::Align::kLeft, true},
               {"here", "HERE"}});
#ifdef OPTFARM_FAST_KERNELS
  for (const MicroKernel* kernel : runtime::AllMicroKernels()) {
    table.AddRow({Cell::Text(kernel->name), Cell::Text(ToString(kernel->needs)),
                  SizeCell(kernel->mr), SizeCell(kernel->panel.nr),
                  SizeCell(kernel->panel.nr > 0 ? kernel->panel.kr : 0),
                  ActivationsCell(*kernel), EpilogueCell(*kernel),
                  Cell::Text(UseOf(*kernel))});
  }
#endif
  return table;
}

}  // namespace optfarm::client_cli
