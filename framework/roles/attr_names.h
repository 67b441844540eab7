// The attributes of communication ops, with Fluid's names. Code that reads such an op uses the views
// (views.h); these names are for code that compares or prints attributes.
#pragma once

#include <string_view>

namespace penstock::roles::attr {

// Of ops that trainers run.
inline constexpr std::string_view kEpmap = "epmap";          // the server of each variable
inline constexpr std::string_view kEndpoints = "endpoints";  // servers
inline constexpr std::string_view kTrainerId = "trainer_id";
inline constexpr std::string_view kSections = "sections";  // rows of each piece
inline constexpr std::string_view kHeightSections = "height_sections";
inline constexpr std::string_view kSendVarnames = "send_varnames";  // pieces, for the communicator
inline constexpr std::string_view kRecvVarnames = "recv_varnames";  // likewise
inline constexpr std::string_view kVarnames = "varnames";           // names on the servers
inline constexpr std::string_view kTableNames = "table_names";      // the slices of a table
inline constexpr std::string_view kUseSendHandler = "use_send_handler";
inline constexpr std::string_view kMergeAdd = "merge_add";
inline constexpr std::string_view kHalfAsync = "half_async";
inline constexpr std::string_view kWithBarrier = "with_barrier";
inline constexpr std::string_view kDoNotRun = "do_not_run";
inline constexpr std::string_view kNextVersion = "next_version";  // of a recv in a plan
inline constexpr std::string_view kLeavesPulls = "leaves_pulls";  // of a fetch_barrier in a plan
inline constexpr std::string_view kRemotePrefetch = "remote_prefetch";
inline constexpr std::string_view kLookupVersion = "lookup_table_version";

// Of ops of a program for several places of a process: the first place runs the op alone.
inline constexpr std::string_view kFirstPlace = "first_place";

// Of listen_and_serv.
inline constexpr std::string_view kEndpoint = "endpoint";
inline constexpr std::string_view kPserverId = "pserver_id";
inline constexpr std::string_view kFanin = "Fanin";
inline constexpr std::string_view kDistributedMode = "distributed_mode";
inline constexpr std::string_view kDcAsgd = "dc_asgd";
inline constexpr std::string_view kOptimizeBlocks = "optimize_blocks";
inline constexpr std::string_view kGradToBlockId = "grad_to_block_id";
inline constexpr std::string_view kSparseGradToParam = "sparse_grad_to_param";
inline constexpr std::string_view kPrefetchBlocks = "prefetch_var_name_to_block_id";
inline constexpr std::string_view kLrBlock = "lr_decay_block_id";
inline constexpr std::string_view kSaveBlock = "checkpint_block_id";  // Fluid's spelling
inline constexpr std::string_view kStartValues = "start_values";
inline constexpr std::string_view kThreads[] = {"rpc_get_thread_num", "rpc_send_thread_num",
                                                "rpc_prefetch_thread_num"};

}  // namespace penstock::roles::attr
