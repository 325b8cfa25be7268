//! The tasks of one worker.

use super::{Task, TaskId};
use crate::cache::Question;
use std::collections::HashMap;

/// The tasks of one worker, by identifier and by question.
#[derive(Debug, Default)]
pub(crate) struct TaskTable {
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_question: HashMap<Question, TaskId>,
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    task: Option<Box<Task>>,
}

impl TaskTable {
    /// Number of tasks.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Adds a task. The caller checked that its question has none.
    pub(crate) fn insert(&mut self, task: Task) -> TaskId {
        let question = task.question.clone();
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        slot.task = Some(Box::new(task));
        let id = TaskId { index, generation: slot.generation };
        self.by_question.insert(question, id);
        id
    }

    pub(crate) fn find(&self, question: &Question) -> Option<TaskId> {
        self.by_question.get(question).copied()
    }

    pub(crate) fn get(&self, id: TaskId) -> Option<&Task> {
        self.slots.get(id.index as usize).filter(|slot| slot.generation == id.generation)?.task.as_deref()
    }

    pub(crate) fn get_mut(&mut self, id: TaskId) -> Option<&mut Task> {
        let slot = self.slots.get_mut(id.index as usize)?;
        if slot.generation == id.generation { slot.task.as_deref_mut() } else { None }
    }

    pub(crate) fn remove(&mut self, id: TaskId) -> Option<Box<Task>> {
        let slot = self.slots.get_mut(id.index as usize).filter(|slot| slot.generation == id.generation)?;
        let task = slot.task.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.index);
        self.by_question.remove(&task.question);
        Some(task)
    }

    /// Whether `id` is `other`, or waits for it, directly or not.
    pub(crate) fn waits_for(&self, id: TaskId, other: TaskId) -> bool {
        let (mut seen, mut next) = (Vec::new(), vec![id]);
        while let Some(id) = next.pop() {
            if id == other {
                return true;
            }
            if seen.contains(&id) {
                continue;
            }
            seen.push(id);
            next.extend(self.get(id).into_iter().flat_map(|task| task.children.iter().copied()));
        }
        false
    }

    /// The tasks that wait for the same question in another worker.
    pub(crate) fn waiting_for_worker(&self) -> Vec<TaskId> {
        let ids = self.by_question.values().copied();
        let mut ids: Vec<TaskId> =
            ids.filter(|id| self.get(*id).is_some_and(|task| task.waits_for_worker)).collect();
        // In an order that does not depend on the hash table.
        ids.sort_unstable_by_key(|id| id.index);
        ids
    }
}
