"""The built-in tools, for the composition root to register."""

from tools.contract import AnyTool
from tools.core.compare_to_baseline import CompareToBaseline
from tools.core.discover_operations import DiscoverOperations
from tools.core.get_admin_info import GetAdminInfo
from tools.core.get_application import GetApplication
from tools.core.get_current_time import GetCurrentTime
from tools.core.get_dashboard_stats import GetDashboardStats
from tools.core.get_incident_history import GetIncidentHistory
from tools.core.get_logs import GetLogs
from tools.core.get_metrics import GetMetrics
from tools.core.get_operation_parameters import GetOperationParameters
from tools.core.get_recent_deploys import GetRecentDeploys
from tools.core.get_resource_schema import GetResourceSchema
from tools.core.get_traces import GetTraces
from tools.core.get_workflow import GetWorkflow
from tools.core.kubectl_describe import KubectlDescribe
from tools.core.kubectl_events import KubectlEvents
from tools.core.kubectl_get import KubectlGet
from tools.core.kubectl_logs import KubectlLogs
from tools.core.list_applications import ListApplications
from tools.core.list_resources import ListResources
from tools.core.list_workflows import ListWorkflows
from tools.core.propose_action import ProposeAction
from tools.core.search_capabilities import SearchCapabilities
from tools.core.search_patterns import SearchPatterns
from tools.cursor import CursorSigner


def core_tools(signer: CursorSigner) -> tuple[AnyTool, ...]:
    """Unbound: what they reach is decided by the capabilities the runner holds."""
    return (
        GetLogs(signer),
        GetMetrics(),
        GetTraces(),
        CompareToBaseline(),
        GetRecentDeploys(),
        GetIncidentHistory(),
        GetAdminInfo(),
        DiscoverOperations(),
        GetOperationParameters(),
        KubectlGet(),
        KubectlDescribe(),
        KubectlLogs(),
        KubectlEvents(),
        ListApplications(),
        GetApplication(),
        ListWorkflows(),
        GetWorkflow(),
        ListResources(),
        GetDashboardStats(),
        SearchCapabilities(),
        GetResourceSchema(),
        SearchPatterns(),
        GetCurrentTime(),
        ProposeAction(),
    )
