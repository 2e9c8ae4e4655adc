//! `task_tracker`: the plan that the run is held to. It lives on the host, in memory.

use std::sync::PoisonError;

use serde::Deserialize;

use super::context::{Change, ToolContext, ToolFailure, ToolOutput};

/// The most items of a plan.
const MAX_ITEMS: usize = 100;
/// The longest title, in characters.
const MAX_TITLE: usize = 300;

/// The arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    action: Action,
    items: Option<Vec<GivenItem>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    Set,
    Update,
    View,
}

/// An item as the model gives it: an update may leave out what stays.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenItem {
    id: String,
    title: Option<String>,
    status: Option<ItemStatus>,
}

/// Where an item stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemStatus {
    Pending,
    InProgress,
    Done,
    Cancelled,
}

impl ItemStatus {
    /// The name as the model writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            ItemStatus::Pending => "pending",
            ItemStatus::InProgress => "in_progress",
            ItemStatus::Done => "done",
            ItemStatus::Cancelled => "cancelled",
        }
    }

    fn is_open(self) -> bool {
        matches!(self, ItemStatus::Pending | ItemStatus::InProgress)
    }
}

/// One item of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanItem {
    pub id: String,
    pub title: String,
    pub status: ItemStatus,
}

/// The plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    items: Vec<PlanItem>,
}

impl Plan {
    /// The items that are neither done nor cancelled.
    pub fn open_items(&self) -> impl Iterator<Item = &PlanItem> {
        self.items.iter().filter(|item| item.status.is_open())
    }

    /// How many items are done.
    fn done(&self) -> usize {
        self.items.iter().filter(|item| item.status == ItemStatus::Done).count()
    }

    fn set(&mut self, given: Vec<GivenItem>) -> Result<(), String> {
        let mut fresh = Plan::default();
        fresh.update(given)?;
        *self = fresh;
        Ok(())
    }

    /// Changes known items and adds new ones: all of them, or none.
    fn update(&mut self, given: Vec<GivenItem>) -> Result<(), String> {
        let mut items = self.items.clone();
        for item in given {
            if item.title.as_ref().is_some_and(|title| title.chars().count() > MAX_TITLE) {
                return Err(format!("item {}: the title is longer than {MAX_TITLE}", item.id));
            }
            match items.iter_mut().find(|known| known.id == item.id) {
                Some(known) => {
                    known.title = item.title.unwrap_or_else(|| known.title.clone());
                    known.status = item.status.unwrap_or(known.status);
                }
                None => items.push(PlanItem {
                    title: item.title.ok_or_else(|| {
                        format!("item {} is not in the plan; give it a title to add it", item.id)
                    })?,
                    status: item.status.unwrap_or(ItemStatus::Pending),
                    id: item.id,
                }),
            }
        }
        if items.len() > MAX_ITEMS {
            return Err(format!("a plan has at most {MAX_ITEMS} items, this one {}", items.len()));
        }
        self.items = items;
        Ok(())
    }

    fn shown(&self) -> String {
        if self.items.is_empty() {
            return "the plan is empty".to_owned();
        }
        let lines = self.items.iter();
        lines
            .map(|item| format!("[{}] {}: {}", item.status.as_str(), item.id, item.title))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

impl Arguments {
    /// Whether the call only looks.
    pub(super) fn is_view(&self) -> bool {
        self.action == Action::View
    }
}

/// Carries the action out.
pub(super) fn run(
    arguments: Arguments,
    context: &ToolContext<'_>,
) -> Result<ToolOutput, ToolFailure> {
    let mut plan = context.plan.lock().unwrap_or_else(PoisonError::into_inner);
    let changed = match (arguments.action, arguments.items) {
        (Action::View, _) => return Ok(ToolOutput::text(plan.shown())),
        (_, None) => Err("items are missing".to_owned()),
        (Action::Set, Some(items)) => plan.set(items),
        (Action::Update, Some(items)) => plan.update(items),
    };
    if let Err(problem) = changed {
        return Ok(ToolOutput::error(format!("{problem}; the plan was not changed")));
    }
    let (open, done) = (plan.open_items().count() as u32, plan.done() as u32);
    Ok(ToolOutput {
        text: format!("plan: {open} open, {done} done"),
        change: Change::Plan { open, done },
        ..ToolOutput::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: &str, title: Option<&str>, status: Option<ItemStatus>) -> GivenItem {
        GivenItem { id: id.to_owned(), title: title.map(str::to_owned), status }
    }

    #[test]
    fn an_update_changes_what_it_names_and_keeps_the_rest() {
        let mut plan = Plan::default();
        plan.set(vec![item("1", Some("read"), None), item("2", Some("write"), None)])
            .expect("the plan is set");
        plan.update(vec![item("1", None, Some(ItemStatus::Done))]).expect("the plan is updated");
        assert_eq!(plan.shown(), "[done] 1: read\n[pending] 2: write");
    }

    #[test]
    fn a_bad_update_changes_nothing() {
        let mut plan = Plan::default();
        plan.set(vec![item("1", Some("read"), None)]).expect("the plan is set");
        let before = plan.clone();
        let given = vec![item("1", None, Some(ItemStatus::Done)), item("9", None, None)];
        assert_eq!(
            plan.update(given),
            Err("item 9 is not in the plan; give it a title to add it".to_owned())
        );
        assert_eq!(plan, before);
    }
}
